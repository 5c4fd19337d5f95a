/* The LZF filter of h5py and AnnData (number 32000), decoding only. Local. */
#ifndef ASPARSE_HDF5_LZF_H
#define ASPARSE_HDF5_LZF_H

/* Its number, and which of its parameters says how many bytes a chunk has unpacked. */
enum { ASPARSE_LZF_FILTER = 32000, ASPARSE_LZF_CHUNK_BYTES = 2 };

/* Registers the filter, unless a plugin has brought it. Later calls do nothing. */
void asparse_hdf5_lzf_register(void);

#endif
