from neuronkit.companion.cli import main

main(prog_name="neuronkit")
