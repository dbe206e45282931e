from shell import is_one_paragraph, shoal_command


def test_the_bound_stands_beside_the_loss_of_mdav():
    result = shoal_command("bound", "census", "-k", "3")

    assert result.exit_code == 0
    assert "(nearest, " in result.output
    assert "5.6922 %" in result.output


def test_an_impossible_k_is_refused():
    result = shoal_command("bound", "census", "-k", "2000")

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)
    assert "k=2000" in result.stderr
