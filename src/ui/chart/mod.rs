//! Charts. Values are plain numbers of unknown meaning.

mod bars;
mod heat;
mod lanes;
mod line;
mod scale;
mod scatter;
mod small;
mod stack;
mod timeline;

pub use bars::{DivergingBar, DivergingBars, Histogram};
pub use heat::CalendarHeat;
pub use lanes::{ChartLane, LaneChart, LaneLevel, LaneMark};
pub use line::{LineChart, LinePoint};
pub use scale::Scale;
pub use scatter::{Dot, Scatter};
pub use small::{Gauge, bucket_line, diverging, meter, sparkline};
pub use stack::{StackedBar, StackedBars, lettered};
pub use timeline::{Timeline, TimelineRow, guides};
