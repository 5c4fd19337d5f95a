# Programs, shared library, headers, CMake package and pkg-config file.
include(CMakePackageConfigHelpers)
install(TARGETS asparse EXPORT asparseTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ${ASPARSE_PROGRAMS} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES src/asparse.h src/asparse_types.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(ASPARSE_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/asparse)
install(EXPORT asparseTargets NAMESPACE asparse:: DESTINATION ${ASPARSE_CMAKE_DIR})
configure_package_config_file(src/cmake/asparseConfig.cmake.in ${PROJECT_BINARY_DIR}/generated/asparseConfig.cmake
  INSTALL_DESTINATION ${ASPARSE_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/asparseConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/asparseConfig.cmake
  ${PROJECT_BINARY_DIR}/generated/asparseConfigVersion.cmake DESTINATION ${ASPARSE_CMAKE_DIR})

# Relative to the .pc file, so that the installed tree can be moved.
file(RELATIVE_PATH ASPARSE_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(src/cmake/asparse.pc.in generated/asparse.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/asparse.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
