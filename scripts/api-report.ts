/**
 * The public surface as text: one report per entry point in etc/, reviewed like code. Fails where a report
 * differs from the built declarations, or where a type can be reached and not be named by a user.
 *
 *   npm run api               compares
 *   npm run api -- --update   writes
 */
import { join } from 'node:path'
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
  return Extractor.invoke(config, { localBuild: update }).succeeded
}

let failed = false
for (const { name, types } of entryPoints) failed = !report(name, types) || failed
if (failed) {
  console.error('the public surface changed: npm run api -- --update, and review etc/ like code')
  process.exitCode = 1
}
