import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { BROKEN_PIPE } from '../../src/cli/command.ts'
import { Captured, closedDirectory, folder, forgetFolders, odradek, odradekWith, ROOT } from './kit.ts'

afterAll(forgetFolders)

describe('odradek', () => {
  it('says what it is and does, on standard output', async () => {
    for (const help of [['--help'], ['-h'], ['help']]) {
      const { code, stdout, stderr } = await odradek(...help)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toMatch(/odradek <command>[\s\S]*inspect[\s\S]*verify[\s\S]*Exit codes/)
    }
  })

  it.each(['inspect', 'verify'])(
    '%s has a page of its own, with every option and exit code',
    async (command) => {
      for (const args of [['--help'], ['-h'], ['--json', 'x', '--help']]) {
        const { code, stdout, stderr } = await odradek(command, ...args)
        expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
        expect(stdout).toMatch(/Usage[\s\S]*Options[\s\S]*--json[\s\S]*JSON[\s\S]*Exit codes/)
        if (command === 'inspect') expect(stdout).toMatch(/--batches[\s\S]*--from[\s\S]*--to/)
        expect(stdout.split('\n').filter((line) => line.length > 120)).toEqual([])
      }
    },
  )

  it('says its version', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    for (const option of ['--version', '-V']) {
      expect(await odradek(option)).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
    }
  })

  it('shows the page of a command also to who asks for help first', async () => {
    expect(await odradek('help', 'topic', 'create')).toEqual(await odradek('topic', 'create', '--help'))
    expect(await odradek('help', 'verify')).toEqual(await odradek('verify', '--help'))
    expect((await odradek('help', 'inspekt')).stderr).toMatch(
      /^odradek: unknown command "inspekt"; inspect\?/,
    )
  })

  it.each([
    [[], 'name a command: serve, topic, produce, consume, group, inspect, verify'],
    [['inspekt'], 'unknown command "inspekt"; inspect?'],
    [['quux'], 'unknown command "quux"; there are serve, topic, produce, consume, group, inspect, verify'],
    [['--halp'], 'unknown option --halp; --help?'],
    [['-x', 'serve'], 'unknown option -x; there are --help, --version'],
    [['inspect'], 'name a data directory'],
    [['inspect', 'a', 'b'], 'one data directory at a time; "b" is another one'],
    [['inspect', '--jsn', 'a'], 'unknown option --jsn; --json?'],
    [['inspect', '--ba', 'a'], 'unknown option --ba; --batches?'],
    [['verify', '--colour', 'a'], 'unknown option --colour; there are --json'],
    [['inspect', '-j', 'a'], 'unknown option -j; there are --batches, --from, --to, --json'],
    [['inspect', '--json=yes', 'a'], '--json takes no value'],
    [['inspect', 'a', '--batches'], '--batches needs a value'],
    [['inspect', 'a', '--batches='], '--batches needs a value'],
    [
      ['inspect', 'a', '--batches', 'orders/x'],
      '--batches is a topic, or one of its partitions such as orders/0; not "orders/x"',
    ],
    [['inspect', 'a', '--from', '3'], '--from and --to go with --batches'],
    [['inspect', 'a', '--batches', 'orders', '--from', 'x'], '--from is an offset, such as 1000; not "x"'],
    [
      ['inspect', 'a', '--batches', 'orders', '--to', '99999999999999999999'],
      '--to is an offset, such as 1000; not "99999999999999999999"',
    ],
  ])('%j is refused with exit code 2 and a hint', async (args, message) => {
    const { code, stdout, stderr } = await odradek(...args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    const [first, second] = stderr.split('\n')
    expect(first).toBe(`odradek: ${message}`)
    const known = ['inspect', 'verify'].includes(args[0] ?? '')
    expect(second).toBe(`Try: odradek ${known ? `${args[0]} ` : ''}--help`)
  })

  it('ends without a word when nobody reads its output any more', async () => {
    const path = await closedDirectory()
    const fail = Object.assign(new Error('broken pipe'), { code: 'EPIPE' })
    for (const args of [['--help'], ['inspect', path], ['inspect', path, '--json'], ['verify', path]]) {
      const ran = await odradekWith({ stdout: new Captured({ fail }) }, ...args)
      expect(ran).toEqual({ code: BROKEN_PIPE, stdout: '', stderr: '' })
    }
  })

  it('says why its output cannot be written', async () => {
    const fail = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
    expect(await odradekWith({ stdout: new Captured({ fail }) }, '--help')).toMatchObject({
      code: 2,
      stderr:
        'odradek: STORAGE_ERROR: the output cannot be written: ENOSPC: no space left on device, write\n',
    })
  })

  it('is coloured on a terminal that wants it, and there alone', async () => {
    const path = await closedDirectory()
    const bold = '\x1b[1m'
    for (const [tty, colors, coloured] of [
      [true, true, true],
      [true, false, false],
      [false, true, false],
    ] as const) {
      const stdout = new Captured({ tty, colors })
      await odradekWith({ stdout }, 'inspect', path)
      expect([tty, colors, stdout.text.includes(bold)]).toEqual([tty, colors, coloured])
    }
  })
})

describe('what is no data directory', () => {
  it.each(['inspect', 'verify'])('is refused by %s with exit code 2, and left alone', async (command) => {
    const empty = await folder()
    for (const path of [empty, ROOT, join(ROOT, 'docs')]) {
      const { code, stdout, stderr } = await odradek(command, path)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain(`${path} is no data directory of Odradek`)
    }
    for (const path of [join(empty, 'none'), join(ROOT, 'package.json'), join(ROOT, 'package.json', 'x')]) {
      const { code, stderr } = await odradek(command, path)
      expect(code).toBe(2)
      expect(stderr).toContain(`${path} is no directory`)
    }
  })

  it('or cannot be looked for, is refused with what the system says', async () => {
    const { code, stderr } = await odradek('verify', 'x'.repeat(5_000))
    expect(code).toBe(2)
    expect(stderr).toContain('odradek: STORAGE_ERROR: cannot look for')
  })
})
