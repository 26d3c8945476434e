HELP = "d"


def add_arguments(parser):
    pass


def run(args):
    pass
