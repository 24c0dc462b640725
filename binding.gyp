{
  # The package has native/addon.gypi alone: npm would compile at each installation what has a binding.gyp.
  "includes": ["native/addon.gypi"]
}
