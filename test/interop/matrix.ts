/** docs/compatibility.md: client × feature, as the last run found it, failures included. */
export interface Outcome {
  readonly client: string
  readonly group: string
  readonly feature: string
  readonly state: 'passed' | 'failed' | 'lacks' | 'missing'
  /** Why it failed, or was left out. */
  readonly why?: string
}

const MARKS = { passed: 'yes', failed: '**no**', lacks: '–', missing: 'not tried' } as const

export function matrixOf(outcomes: readonly Outcome[]): string {
  const clients = [...new Set(outcomes.map(({ client }) => client))]
  const features = [...new Set(outcomes.map(({ feature }) => feature))]
  const find = (client: string, feature: string): Outcome | undefined =>
    outcomes.find((each) => each.client === client && each.feature === feature)
  const rows = features.map((feature) => {
    const cells = clients.map((client) => MARKS[find(client, feature)?.state ?? 'missing'])
    return `| ${feature} | ${cells.join(' | ')} |`
  })
  const notes = outcomes.filter(({ why }) => why !== undefined)
  const lines = notes.map(({ client, feature, why }) => `- ${client}, ${feature}: ${why}`)
  return `# Compatibility

<!-- Written by \`npm run interop -- --write\`. Do not edit: run it again. -->

Kafka clients, unmodified, against \`odradek serve\`. What a client produced is read in process, and what it is to
consume was published there, so that a fault on both sides of the wire does not hide. Run them yourself:
\`npm run interop\`. A dash is what the client itself cannot do.

| | ${clients.join(' | ')} |
|---|${clients.map(() => '---|').join('')}
${rows.join('\n')}
${lines.length === 0 ? '' : `\n${lines.join('\n')}\n`}`
}
