/** Text in columns, and numbers for people. */

/** Rows of equally many cells, as lines: columns are as wide as their widest cell; those named are flush right. */
export function table(rows: readonly (readonly string[])[], right: readonly number[] = []): string[] {
  const widths: number[] = []
  for (const row of rows) {
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length)
  }
  return rows.map((row) => {
    const cells = row.map((cell, i) => {
      const width = widths[i] as number
      return right.includes(i) ? cell.padStart(width) : cell.padEnd(width)
    })
    return cells.join('  ').trimEnd()
  })
}

/** `1 group`, `2 groups`. */
export function plural(count: number, one: string, many: string = `${one}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`
}

/** `1 byte`, `1,024 bytes`: exact, since they are compared with what other tools say. */
export function bytesText(count: number): string {
  return plural(count, 'byte')
}
