/** The little statistics that the tables and the soak test need. */

export function quantile(figures: readonly number[], q: number): number {
  const sorted = [...figures].sort((a, b) => a - b)
  const place = (sorted.length - 1) * q
  const below = sorted[Math.floor(place)] ?? Number.NaN
  const above = sorted[Math.ceil(place)] ?? Number.NaN
  return below + (above - below) * (place - Math.floor(place))
}

export function median(figures: readonly number[]): number {
  return quantile(figures, 0.5)
}

export interface Spread {
  readonly median: number
  readonly q1: number
  readonly q3: number
}

export function spread(figures: readonly number[]): Spread {
  return { median: median(figures), q1: quantile(figures, 0.25), q3: quantile(figures, 0.75) }
}

export interface Trend {
  /** Change of y per unit of x. */
  readonly slope: number
  /** Standard error of the slope. */
  readonly error: number
}

/** Least squares through (x, y). */
export function trend(points: readonly (readonly [x: number, y: number])[]): Trend {
  const n = points.length
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / n
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / n
  const xx = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
  const xy = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0)
  const slope = xy / xx
  const residual = points.reduce((sum, [x, y]) => sum + (y - meanY - slope * (x - meanX)) ** 2, 0)
  return { slope, error: Math.sqrt(residual / Math.max(n - 2, 1) / xx) }
}
