"""Language model providers, one file each; the rest of farhand knows only `base.Model`."""
