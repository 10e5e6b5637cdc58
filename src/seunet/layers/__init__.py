"""nn.Modules that hold parameters; forward is one call into maths or kernels."""
