#include "lab/figures/pattern_figure.h"

#include "routing/core/error.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace routing {
namespace {

// All lengths in units of the drawing.
constexpr double kPanelSide = 256.0;
constexpr double kMargin = 24.0;
constexpr double kMinWidth = 720.0;  // the legend in one line
constexpr double kTitleHeight = 34.0;
constexpr double kRowLabelWidth = 26.0;
constexpr double kAxisWidth = 34.0;     // left of a row's first panel: tick numbers and the name of the axis
constexpr double kPanelHeading = 38.0;  // title and caption over a panel
constexpr double kPanelFooting = 34.0;  // tick numbers and the name of the axis under it
constexpr double kPanelGap = 30.0;
constexpr double kRowGap = 18.0;
constexpr double kLegendHeight = 20.0;
constexpr double kFrameWidth = 1.0;
constexpr double kGridFromCell = 8.0;  // smaller cells would drown in their grid
constexpr double kSwatch = 11.0;

const TextStyle kFigureTitle = {.size = 17.0, .bold = true};
const TextStyle kRowLabel = {.size = 13.0, .bold = true, .align = 0.5, .upwards = true};
const TextStyle kPanelTitle = {.size = 12.5, .bold = true};
const TextStyle kCaption = {.size = 10.0, .colour = kFaintInk};
const TextStyle kLegend = {.size = 10.5};

bool is_read(const PatternPanel& panel, std::size_t cell) {
  return panel.group[cell] >= 0;
}

void validate(const PatternPanel& panel) {
  require<InputError>(panel.num_queries >= 1 && panel.num_keys >= 1, "panel '", panel.title, "': ", panel.num_queries,
                      " queries and ", panel.num_keys, " keys, but a picture needs at least one of each");
  const auto cells = static_cast<std::size_t>(panel.num_queries * panel.num_keys);
  require<InputError>(panel.group.size() == cells, "panel '", panel.title, "': group has ", panel.group.size(),
                      " entries, but ", panel.num_queries, " queries and ", panel.num_keys, " keys need ", cells);
  require<InputError>(panel.count.size() == cells, "panel '", panel.title, "': count has ", panel.count.size(),
                      " entries, but ", panel.num_queries, " queries and ", panel.num_keys, " keys need ", cells);
  for (std::size_t cell = 0; cell < cells; ++cell) {
    require<InputError>(is_read(panel, cell) == (panel.count[cell] > 0), "panel '", panel.title, "': cell ", cell,
                        " has group ", panel.group[cell], " but count ", panel.count[cell],
                        "; a key that is read has a group from 0 and a count from 1, any other has -1 and 0");
  }
}

void validate(const PatternFigure& figure) {
  require<InputError>(!figure.rows.empty(), "figure '", figure.title, "' has no rows; give it at least one");
  for (const PatternFigure::Row& row : figure.rows) {
    require<InputError>(!row.panels.empty(), "row '", row.label, "' has no panels; give it at least one");
    for (const PatternPanel& panel : row.panels) validate(panel);
  }
}

// Whole pixels, so that no cell's edge is blurred and all are alike.
double cell_side(const PatternPanel& panel) {
  const auto longest = static_cast<double>(std::max(panel.num_queries, panel.num_keys));
  return std::max(1.0, std::floor(kPanelSide * kPixelsPerUnit / longest)) / kPixelsPerUnit;
}

double panel_width(const PatternPanel& panel) {
  return cell_side(panel) * static_cast<double>(panel.num_keys);
}
double panel_height(const PatternPanel& panel) {
  return cell_side(panel) * static_cast<double>(panel.num_queries);
}

// Smaller cells have no room for a mark and a rim of the group's colour around it.
bool has_marks(const PatternPanel& panel) {
  return cell_side(panel) * kPixelsPerUnit >= 3.0;
}

bool has_shared_cells(const PatternFigure& figure) {
  for (const PatternFigure::Row& row : figure.rows) {
    for (const PatternPanel& panel : row.panels) {
      if (!has_marks(panel)) continue;
      if (std::any_of(panel.count.begin(), panel.count.end(), [](std::int32_t count) { return count > 1; }))
        return true;
    }
  }
  return false;
}

// The dark square inside a cell that is read through several groups.
double mark_side(double cell) {
  const double pixels = cell * kPixelsPerUnit;
  const double side = 2.0 * std::floor(pixels / 4.0);
  // The same parity as the cell, so that the mark is centred on whole pixels.
  return (std::fmod(pixels, 2.0) == 0.0 ? std::max(side, 2.0) : side + 1.0) / kPixelsPerUnit;
}

void add_mark(cairo_t* context, double left, double top, double cell) {
  const double side = mark_side(cell);
  cairo_rectangle(context, left + (cell - side) / 2.0, top + (cell - side) / 2.0, side, side);
}

// One path a colour: neighbouring cells then leave no hairlines between them, however an SVG is scaled.
void draw_cells(cairo_t* context, const PatternPanel& panel, const PatternLayout::Box& box) {
  std::map<std::int32_t, std::vector<std::size_t>> cells_of_group;
  for (std::size_t cell = 0; cell < panel.group.size(); ++cell) {
    if (is_read(panel, cell)) cells_of_group[panel.group[cell]].push_back(cell);
  }
  const auto keys = static_cast<std::size_t>(panel.num_keys);
  const auto left_of = [&](std::size_t cell) {
    const std::size_t key = cell % keys;
    return box.left + box.cell * static_cast<double>(key);
  };
  const auto top_of = [&](std::size_t cell) {
    const std::size_t query = cell / keys;
    return box.top + box.cell * static_cast<double>(query);
  };
  for (const auto& [group, cells] : cells_of_group) {
    for (const std::size_t cell : cells) cairo_rectangle(context, left_of(cell), top_of(cell), box.cell, box.cell);
    set_colour(context, group_colour(group));
    cairo_fill(context);
  }
  for (std::size_t cell = 0; has_marks(panel) && cell < panel.count.size(); ++cell) {
    if (panel.count[cell] > 1) add_mark(context, left_of(cell), top_of(cell), box.cell);
  }
  set_colour(context, kInk);
  cairo_fill(context);
}

void draw_grid(cairo_t* context, const PatternPanel& panel, const PatternLayout::Box& box) {
  if (box.cell < kGridFromCell) return;
  const double right = box.left + panel_width(panel);
  const double bottom = box.top + panel_height(panel);
  for (std::int64_t key = 1; key < panel.num_keys; ++key) {
    const double x = box.left + box.cell * static_cast<double>(key);
    cairo_move_to(context, x, box.top);
    cairo_line_to(context, x, bottom);
  }
  for (std::int64_t query = 1; query < panel.num_queries; ++query) {
    const double y = box.top + box.cell * static_cast<double>(query);
    cairo_move_to(context, box.left, y);
    cairo_line_to(context, right, y);
  }
  set_colour(context, {0.88, 0.88, 0.88});
  cairo_set_line_width(context, 0.5);
  cairo_stroke(context);
}

void draw_frame(cairo_t* context, const PatternPanel& panel, const PatternLayout::Box& box) {
  // Outside the cells: it must not narrow those at the border.
  cairo_rectangle(context, box.left - kFrameWidth / 2.0, box.top - kFrameWidth / 2.0, panel_width(panel) + kFrameWidth,
                  panel_height(panel) + kFrameWidth);
  set_colour(context, {0.35, 0.35, 0.35});
  cairo_set_line_width(context, kFrameWidth);
  cairo_stroke(context);
}

void draw_axes(cairo_t* context, const PatternPanel& panel, const PatternLayout::Box& box, bool first_of_row) {
  TextStyle style = kCaption;
  const double below = box.top + panel_height(panel) + 12.0;
  const double right = box.left + panel_width(panel);
  draw_text(context, "0", box.left, below, style);
  style.align = 1.0;
  if (panel.num_keys > 1) draw_text(context, std::to_string(panel.num_keys - 1), right, below, style);
  if (first_of_row) {
    draw_text(context, "0", box.left - 5.0, box.top + 8.0, style);
    if (panel.num_queries > 1) {
      const double bottom = box.top + panel_height(panel);
      draw_text(context, std::to_string(panel.num_queries - 1), box.left - 5.0, bottom, style);
    }
  }
  style.align = 0.5;
  draw_text(context, "inputs (keys)", (box.left + right) / 2.0, below + 2.0, style);
  if (!first_of_row) return;
  style.upwards = true;
  draw_text(context, "outputs (queries)", box.left - 10.0, box.top + panel_height(panel) / 2.0, style);
}

void draw_panel(cairo_t* context, const PatternPanel& panel, const PatternLayout::Box& box, bool first_of_row) {
  const double room = kPanelSide + kPanelGap - 8.0;
  draw_text(context, panel.title, box.left, box.top - 21.0, shrunk_to_fit(context, panel.title, kPanelTitle, room));
  draw_text(context, panel.caption, box.left, box.top - 7.0, shrunk_to_fit(context, panel.caption, kCaption, room));
  draw_cells(context, panel, box);
  draw_grid(context, panel, box);
  draw_frame(context, panel, box);
  draw_axes(context, panel, box, first_of_row);
}

void draw_swatch(cairo_t* context, double x, double baseline, const Colour& colour) {
  cairo_rectangle(context, x, baseline - kSwatch + 1.5, kSwatch, kSwatch);
  set_colour(context, colour);
  cairo_fill(context);
}

void draw_legend(cairo_t* context, double left, double baseline, bool with_mark) {
  constexpr std::int32_t kShownGroups = 5;
  constexpr double kEntryGap = 26.0;
  constexpr double kTextGap = 7.0;
  double x = left;
  for (std::int32_t group = 0; group < kShownGroups; ++group, x += kSwatch + 2.0) {
    draw_swatch(context, x, baseline, group_colour(group));
  }
  x += kTextGap - 2.0;
  const auto explain = [&](const std::string& text) {
    draw_text(context, text, x, baseline, kLegend);
    x += text_width(context, text, kLegend) + kEntryGap;
  };
  explain("the output reads the input; one colour, one group");
  if (with_mark) {
    draw_swatch(context, x, baseline, group_colour(0));
    add_mark(context, x, baseline - kSwatch + 1.5, kSwatch);
    set_colour(context, kInk);
    cairo_fill(context);
    x += kSwatch + kTextGap;
    explain("read through several groups");
  }
  cairo_rectangle(context, x + 0.25, baseline - kSwatch + 1.75, kSwatch - 0.5, kSwatch - 0.5);
  set_colour(context, kFaintInk);
  cairo_set_line_width(context, 0.5);
  cairo_stroke(context);
  x += kSwatch + kTextGap;
  explain("not read");
}

void draw_figure(cairo_t* context, const PatternFigure& figure, const PatternLayout& layout) {
  const TextStyle title_style = shrunk_to_fit(context, figure.title, kFigureTitle, layout.width - 2.0 * kMargin);
  draw_text(context, figure.title, kMargin, kMargin + 14.0, title_style);
  for (std::size_t row = 0; row < figure.rows.size(); ++row) {
    const std::vector<PatternPanel>& panels = figure.rows[row].panels;
    double height = 0.0;
    for (std::size_t panel = 0; panel < panels.size(); ++panel) {
      draw_panel(context, panels[panel], layout.boxes[row][panel], panel == 0);
      height = std::max(height, panel_height(panels[panel]));
    }
    draw_text(context, figure.rows[row].label, kMargin + 11.0, layout.boxes[row][0].top + height / 2.0, kRowLabel);
  }
  draw_legend(context, kMargin + kRowLabelWidth + kAxisWidth, layout.height - kMargin + 2.0, has_shared_cells(figure));
}

}  // namespace

PatternLayout pattern_layout(const PatternFigure& figure) {
  validate(figure);
  // Columns line up over all rows, so that a pattern and its variant in the next row stand one above the other.
  std::vector<double> column_widths;
  for (const PatternFigure::Row& row : figure.rows) {
    column_widths.resize(std::max(column_widths.size(), row.panels.size()), kPanelSide);
    for (std::size_t column = 0; column < row.panels.size(); ++column) {
      column_widths[column] = std::max(column_widths[column], panel_width(row.panels[column]));
    }
  }
  PatternLayout layout;
  layout.width = kMinWidth;
  double top = kMargin + kTitleHeight;
  for (const PatternFigure::Row& row : figure.rows) {
    top += kPanelHeading;
    double left = kMargin + kRowLabelWidth + kAxisWidth;
    double height = 0.0;
    std::vector<PatternLayout::Box>& boxes = layout.boxes.emplace_back();
    for (std::size_t column = 0; column < row.panels.size(); ++column) {
      boxes.push_back({left, top, cell_side(row.panels[column])});
      left += column_widths[column] + kPanelGap;
      height = std::max(height, panel_height(row.panels[column]));
    }
    layout.width = std::max(layout.width, left - kPanelGap + kMargin);
    top += height + kPanelFooting + kRowGap;
  }
  layout.height = top - kRowGap + kLegendHeight + kMargin;
  return layout;
}

void write_pattern_figure(const PatternFigure& figure, const std::filesystem::path& path) {
  const FigureFormat format = figure_format(path);
  const PatternLayout layout = pattern_layout(figure);
  write_figure(path, format, {layout.width, layout.height, figure.title},
               [&](cairo_t* context) { draw_figure(context, figure, layout); });
}

}  // namespace routing
