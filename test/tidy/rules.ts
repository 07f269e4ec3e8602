/**
 * The house rules as functions from text to complaints, so that each can be shown a bad snippet. They read
 * text and no syntax tree: the code is formatted by one tool, which makes an import statement start its line
 * and end in a quoted path, and a rule that needs no parser cannot disagree with the compiler's version.
 */
export interface SourceFile {
  /** Path below src/, with `/`. */
  readonly path: string
  readonly text: string
}

interface Import {
  /** Path below src/ for a relative import, else the specifier as written. */
  readonly target: string
  readonly kind: 'value' | 'type' | 'dynamic'
}

/** A file longer than this has two ideas. */
export const MAX_LINES = 500
export const LONG_LINES = 400
/** Begins with the line that tells a shell what runs it. */
const PROGRAM = 'cli/main.ts'

/**
 * Who may import whom, besides itself. A zone is a folder of src/, or a folder or file of src/log. Files
 * directly in src/ compose the rest and may import anything.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  model: [],
  'log/contract.ts': ['model'],
  'log/state.ts': ['model', 'log/contract.ts'],
  'log/format': ['model'],
  'log/memory': ['model', 'log/contract.ts', 'log/state.ts', 'log/format'],
  'log/file': ['model', 'log/contract.ts', 'log/state.ts', 'log/format'],
  core: ['model', 'log/contract.ts'],
  coordinator: ['model', 'log/contract.ts', 'core'],
  wire: ['model', 'log/format'],
  client: ['model', 'log/format', 'wire'],
  server: ['model', 'log/contract.ts', 'log/format', 'core', 'coordinator', 'broker.ts', 'wire'],
  cli: ['model', 'log/file', 'log/format', 'node', 'wire', 'client', 'server', 'index.ts'],
  // Values reach an engine's logs as the core hands them over: encoded by the same function.
  testing: ['model', 'log/contract.ts', 'log/format', 'core', 'broker.ts', 'index.ts', 'server'],
}

/** Where Node's modules and globals may be named: the roots, and the parts of the file engine that touch the system. */
function knowsNode(path: string): boolean {
  return (
    path === 'index.ts' ||
    /^(?:node|cli|server|client)\//.test(path) ||
    /^log\/file\/[a-z-]+-node\.ts$/.test(path)
  )
}

function zoneOf(path: string): string {
  const parts = path.split('/')
  if (parts.length === 1) return path
  return parts[0] === 'log' ? `log/${parts[1]}` : (parts[0] as string)
}

/** Every complaint about one file. */
export function complaintsAbout(file: SourceFile): string[] {
  const code = withoutProse(file.text)
  return [
    ...directionComplaints(file),
    ...timeComplaints(file.path, code),
    ...nodeComplaints(file, code),
    ...shapeComplaints(file, code),
    ...unitComplaints(code),
  ].map((complaint) => `${file.path}: ${complaint}`)
}

function directionComplaints(file: SourceFile): string[] {
  const from = zoneOf(file.path)
  if (from !== 'cli' && importsOf(file).some(({ target }) => zoneOf(target) === 'cli')) {
    return ['nobody imports cli: it is a program']
  }
  if (!file.path.includes('/')) return []
  const allowed = MAY_IMPORT[from]
  if (allowed === undefined) return knowsNode(file.path) ? [] : [unknownZone(from)]
  return importsOf(file)
    .filter(({ target }) => target.endsWith('.ts'))
    .map(({ target }) => zoneOf(target))
    .filter((to) => to !== from && !allowed.includes(to))
    .map((to) => `${from} must not import ${to}`)
}

function unknownZone(zone: string): string {
  return `${zone} is in no zone: say in test/tidy/rules.ts and biome.json what it may import`
}

function timeComplaints(path: string, code: string): string[] {
  if (path === 'model/clock.ts') return []
  return found(
    code,
    /\b(?:setTimeout|setInterval|setImmediate)\b|\bDate\.now\b|\bnew Date\(\)|\bperformance\./g,
  ).map((what) => `${what} outside model/clock.ts: take a Clock`)
}

function nodeComplaints(file: SourceFile, code: string): string[] {
  if (knowsNode(file.path)) return []
  const modules = importsOf(file).filter(({ target }) => target.startsWith('node:'))
  const globals = found(code, /(?<![.#\w])(?:Buffer|process)(?=[.([])/g)
  return [...modules.map(({ target }) => target), ...globals].map(
    (what) => `${what} outside src/index.ts, src/node and *-node.ts of log/file: inject it from there`,
  )
}

function shapeComplaints(file: SourceFile, code: string): string[] {
  const complaints: string[] = []
  const text = file.path === PROGRAM ? file.text.replace(/^#!.*\n/, '') : file.text
  if (!/^\/\*\*?\s[\s\S]*?\*\//.test(text))
    complaints.push('does not open with a comment that says what it owns')
  if (/^export default\b/m.test(code)) complaints.push('export default: name it')
  if (/^export (?:type )?\*/m.test(code)) complaints.push('export *: list the names one by one')
  if (/\bcatch\s*(?:\([^)]*\)\s*)?\{\s*\}/.test(file.text)) complaints.push('an empty catch does not say why')
  const lines = lineCount(file.text)
  if (lines > MAX_LINES) complaints.push(`${lines} lines, more than ${MAX_LINES}: it has two ideas`)
  return complaints
}

/** A length of time without its unit: `timeout: number` says less than `timeoutMs: number`. */
function unitComplaints(code: string): string[] {
  return found(code, /\b\w*(?:timeout|delay|interval|duration|latency|grace|elapsed)(?=\??: number\b)/gi).map(
    (name) => `${name} has no unit in its name`,
  )
}

/** Cycles of value imports, each as `a → b → a`. Type imports are erased and cannot deadlock a module. */
export function cycles(files: readonly SourceFile[]): string[] {
  const graph = new Map(
    files.map((file) => [file.path, importsOf(file).filter(({ kind }) => kind === 'value')]),
  )
  const done = new Set<string>()
  const complaints: string[] = []
  const visit = (path: string, above: readonly string[]): void => {
    const again = above.indexOf(path)
    if (again >= 0) complaints.push([...above.slice(again), path].join(' → '))
    if (again >= 0 || done.has(path)) return
    for (const { target } of graph.get(path) ?? []) visit(target, [...above, path])
    done.add(path)
  }
  for (const file of files) visit(file.path, [])
  return complaints
}

function importsOf(file: SourceFile): Import[] {
  const imports: Import[] = []
  for (const [, type, specifier] of file.text.matchAll(
    /^(?:import|export)\b(\s+type\b)?(?:[\w\s{},*$]*\bfrom)?\s*['"]([^'"]+)['"]/gm,
  )) {
    imports.push({
      target: resolve(file.path, specifier as string),
      kind: type === undefined ? 'value' : 'type',
    })
  }
  for (const [, specifier] of file.text.matchAll(/\bimport\(\s*['"]([^'"]+)['"]/g)) {
    imports.push({ target: resolve(file.path, specifier as string), kind: 'dynamic' })
  }
  return imports
}

function resolve(from: string, specifier: string): string {
  if (!specifier.startsWith('.')) return specifier
  const parts = from.split('/').slice(0, -1)
  for (const part of specifier.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '.') parts.push(part)
  }
  return parts.join('/')
}

/**
 * The text with comments, plain strings and regular expressions emptied. Templates stay, since code may
 * hide in them: a false alarm is seen, a miss is not.
 */
function withoutProse(text: string): string {
  const tokens =
    /\/\*[\s\S]*?\*\/|\/\/.*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`|(?<=[=(,:!&|?[{};\n]\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\//g
  return text.replace(tokens, (token) => (token.startsWith('`') ? token : token.replace(/[^\n]/g, ' ')))
}

export function lineCount(text: string): number {
  return text.trimEnd().split('\n').length
}

function found(code: string, pattern: RegExp): string[] {
  return [...code.matchAll(pattern)].map(([what]) => what)
}
