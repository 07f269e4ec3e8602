/**
 * The public surface as text: one report per entry point in etc/, reviewed like code. Fails where a report
 * differs from the built declarations, or where a type can be reached and no entry point names it.
 *
 *   npm run api               compares
 *   npm run api -- --update   writes
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ExtractorLogLevel, ExtractorMessage } from '@microsoft/api-extractor'
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor'
import { entryPoints, root } from './package.ts'

const configPath = join(root, 'etc', 'api-extractor.json')
const update = process.argv.includes('--update')

function report(name: string, declarations: string): boolean {
  const configObject = ExtractorConfig.loadFile(configPath)
  configObject.mainEntryPointFilePath = join(root, declarations)
  configObject.apiReport = { enabled: true, ...configObject.apiReport, reportFileName: `${name}.api.md` }
  const config = ExtractorConfig.prepare({
    configObject,
    configObjectFullPath: configPath,
    packageJsonFullPath: join(root, 'package.json'),
  })
  const callback = { messageCallback: passIfNamedBefore(name) }
  return Extractor.invoke(config, { localBuild: update, ...callback }).succeeded
}

/** An entry point need not repeat a type that one before it, reported already, names. */
function passIfNamedBefore(name: string): (message: ExtractorMessage) => void {
  const before = entryPoints.slice(
    0,
    entryPoints.findIndex((each) => each.name === name),
  )
  return (message) => {
    const symbol = /^The symbol "(\w+)" needs to be exported/.exec(message.text)?.[1]
    if (symbol === undefined || !before.some((each) => isNamedBy(each.name, symbol))) return
    message.logLevel = 'none' as ExtractorLogLevel.None
  }
}

function isNamedBy(entryPoint: string, symbol: string): boolean {
  const surface = readFileSync(join(root, 'etc', `${entryPoint}.api.md`), 'utf8')
  return new RegExp(`^export .*\\b(?:class|interface|type|function|const) ${symbol}\\b`, 'm').test(surface)
}

let failed = false
for (const { name, types } of entryPoints) failed = !report(name, types) || failed
if (failed) {
  console.error('the public surface changed: npm run api -- --update, and review etc/ like code')
  process.exitCode = 1
}
