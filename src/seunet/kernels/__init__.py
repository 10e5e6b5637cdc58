"""The fast paths behind one function each, equal to the reference.  See `dispatch.jet_convolution`."""
