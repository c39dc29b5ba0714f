import math

import pytest

from slimgrad.comm.traffic import TrafficMeter


def test_nothing_sent():
    report = TrafficMeter(world_size=4).report()
    assert (report.steps, report.components, report.sent_bytes) == (0, 0, 0)
    assert math.isnan(report.bits_per_component)
    assert math.isnan(report.exact_share)
    assert math.isnan(report.exact_bytes_share)
    assert report.relative_error is None
    assert "relative error" not in str(report)


def test_counters_add_up():
    meter = TrafficMeter(world_size=2)
    for _ in range(3):
        meter.count_step()
        meter.count_sent(components=1000, exact_components=100, sent_bytes=850, exact_bytes=425)
    meter.count_error(4.0, 100.0)
    meter.count_error(5.0, 0.0)
    with meter.codec():
        pass
    with meter.wire():
        pass
    report = meter.report()
    assert (report.steps, report.components, report.exact_components) == (3, 3000, 300)
    assert report.bits_per_component == pytest.approx(6.8)
    assert report.exact_share == pytest.approx(0.1)
    assert report.exact_bytes == 1275
    assert report.exact_bytes_share == 0.5
    assert report.relative_error == pytest.approx(0.3)
    assert report.codec_seconds > 0
    assert report.wire_seconds > 0


def test_time_counts_when_the_block_fails():
    meter = TrafficMeter(world_size=2)
    with pytest.raises(ZeroDivisionError), meter.codec():
        _ = 1 / 0
    with pytest.raises(ZeroDivisionError), meter.wire():
        _ = 1 / 0
    assert meter.report().codec_seconds > 0
    assert meter.report().wire_seconds > 0


def test_the_table_holds_every_figure():
    meter = TrafficMeter(world_size=2)
    meter.count_sent(components=2000, exact_components=500, sent_bytes=1000, exact_bytes=125)
    meter.count_error(1.0, 4.0)
    text = str(meter.report())
    for figure in ("2,000", "25.00%", "1,000", "4.000", "0.5000", "12.50%"):
        assert figure in text
    assert len({len(line) for line in text.splitlines()}) == 1
