/* The LZF filter of h5py and AnnData (number 32000), decoding only. Local. */
#ifndef ASPARSE_HDF5_LZF_H
#define ASPARSE_HDF5_LZF_H

/* Registers the filter, unless a plugin has brought it. Later calls do nothing. */
void asparse_hdf5_lzf_register(void);

#endif
