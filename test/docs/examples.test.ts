/**
 * Runs every example in a process of its own, on the source, and compares what it prints with the file of the
 * same name in examples/output: they are documentation, so they say exactly what they do, and end by themselves.
 */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '..', '..')
const examples = join(root, 'examples')
const outputs = join(examples, 'output')
const tsx = join(root, 'node_modules', 'tsx', 'dist', 'cli.mjs')

/** Reads a file of the user's; what it prints depends on the machine. */
const UNASSERTED = 'quickstart'
/** Subscribers print as they are served: who comes first may differ, what each of them gets may not. */
const INTERLEAVED: readonly string[] = ['interview/log-with-cursors']

function namesIn(folder: string, extension: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(extension))
    .map((name) => name.slice(0, -extension.length).split(sep).join('/'))
    .sort()
}

interface Run {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

function run(name: string): Promise<Run> {
  const args = [tsx, '--tsconfig', join(import.meta.dirname, 'tsconfig.json'), join(examples, `${name}.ts`)]
  const child = spawn(process.execPath, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 60_000,
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}

/** The lines of each section, those of one subscriber together and in their order. */
function bySubscriber(text: string): string[] {
  const subscriber = (line: string): string => line.split(' ', 1)[0] as string
  return text
    .split(/^(?=---)/m)
    .flatMap((section) => section.split('\n').sort((a, b) => subscriber(a).localeCompare(subscriber(b))))
}

const names = namesIn(examples, '.ts').filter((name) => name !== UNASSERTED)

describe('examples/', () => {
  it('says what each of its files prints, and of nothing else', () => {
    expect(namesIn(outputs, '.txt')).toEqual(names)
  })

  it.concurrent.each(names)(
    '%s prints what it is documented to, and ends by itself',
    async (name) => {
      const { code, stdout, stderr } = await run(name)
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
      const expected = readFileSync(join(outputs, `${name}.txt`), 'utf8')
      if (INTERLEAVED.includes(name)) expect(bySubscriber(stdout)).toEqual(bySubscriber(expected))
      else expect(stdout).toBe(expected)
    },
    90_000,
  )
})
