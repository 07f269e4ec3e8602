/** docs/compatibility.md: client × feature, as the last run found it, failures included. */
export interface Outcome {
  readonly client: string
  readonly feature: string
  readonly state: 'passed' | 'failed' | 'lacks' | 'missing'
  /** Why it failed, or was left out. */
  readonly why?: string
}

const MARKS = { passed: 'yes', failed: '**no**', lacks: '–', missing: 'not tried' } as const

/** Clients by features, then programs, each with what it was tried with. */
export function matrixOf(outcomes: readonly Outcome[], programs: readonly Outcome[]): string {
  const clients = [...new Set(outcomes.map(({ client }) => client))]
  const features = [...new Set(outcomes.map(({ feature }) => feature))]
  const states = new Map(outcomes.map(({ client, feature, state }) => [`${client}\n${feature}`, state]))
  const rows = features.map((feature) => {
    const cells = clients.map((client) => MARKS[states.get(`${client}\n${feature}`) ?? 'missing'])
    return `| ${feature} | ${cells.join(' | ')} |`
  })
  const notes = clients.flatMap((client) => notesOf(client, outcomes))
  return `# Compatibility

<!-- Written by \`npm run interop -- --write\`. Do not edit: run it again. -->

Kafka clients, unmodified, against \`odradek serve\`. What a client produced is read in process, and what it is to
consume was published there, so that a fault on both sides of the wire does not hide. Run them yourself:
\`npm run interop\`. A dash is what the client itself cannot do.

Storms are no row of it: idempotent producers (librdkafka, Java) and a group (KafkaJS) whose connections break at random
moments, whose members are killed and whose server is killed and comes back from its disk, judged by the history checker:
nothing lost, nothing there twice, each record in one pair of hands. One is part of \`npm run interop\`; \`npm run interop -- --storms 20\` plays more.

| | ${clients.join(' | ')} |
|---|${clients.map(() => '---|').join('')}
${rows.join('\n')}
${notes.length === 0 ? '' : `\n${notes.join('\n')}\n`}${programsOf(programs)}`
}

function programsOf(programs: readonly Outcome[]): string {
  if (programs.length === 0) return ''
  const rows = programs.map(({ client, feature, state, why }) => {
    const mark = why === undefined ? MARKS[state] : `${MARKS[state]} (${why})`
    return `| ${client} | ${feature} | ${mark} |`
  })
  return `
## Programs

As they are published, by their command line.

| of | program | works |
|---|---|---|
${rows.join('\n')}
`
}

/** One line for each reason, with all that it holds for. */
function notesOf(client: string, outcomes: readonly Outcome[]): string[] {
  const byWhy = new Map<string, string[]>()
  for (const { client: its, feature, why } of outcomes) {
    if (its === client && why !== undefined) byWhy.set(why, [...(byWhy.get(why) ?? []), feature])
  }
  return [...byWhy].map(([why, features]) => {
    const what = features.length > 10 ? `${features.length} features` : features.join('; ')
    return `- ${client}: ${what}: ${why}`
  })
}
