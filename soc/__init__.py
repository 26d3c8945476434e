
from liteprobe.soc import same_names

same_names.install()
