/** The version of the package, from its manifest. */
import { readFile } from 'node:fs/promises'

export async function packageVersion(): Promise<string> {
  const manifest = await readFile(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}
