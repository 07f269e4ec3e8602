/** What a figure depends on besides the code: machine, runtime, versions. */
import { readFileSync } from 'node:fs'
import os from 'node:os'

export interface Environment {
  readonly machine: string
  readonly node: string
  readonly v8: string
  readonly versions: { readonly [name: string]: string }
}

interface Lockfile {
  readonly packages: { readonly [path: string]: { readonly version?: string } }
}

const PEERS = ['emittery', 'eventemitter3', 'fastq', 'mitt', 'mqemitter', 'rxjs']

export function environment(): Environment {
  const lockfile = JSON.parse(
    readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'),
  ) as Lockfile
  const versions: { [name: string]: string } = { odradek: ownVersion() }
  for (const peer of PEERS) versions[peer] = lockfile.packages[`node_modules/${peer}`]?.version ?? 'unknown'
  const cpus = os.cpus()
  const model = cpus[0]?.model.trim() || 'unknown processor'
  const memoryGiB = Math.round(os.totalmem() / 1024 ** 3)
  return {
    machine: `${cpus.length} × ${model}, ${memoryGiB} GiB, ${os.type()} ${os.arch()}`,
    node: process.version,
    v8: process.versions.v8,
    versions,
  }
}

function ownVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}
