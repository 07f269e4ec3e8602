/** Set-up of the projects that run the suites on another engine: leaves out what does not apply to it, by name. */
import { join, relative, sep } from 'node:path'
import { afterAll, beforeEach, expect } from 'vitest'
import { notOn } from './not-on.ts'
import { SUITE_ENGINE } from './suite.ts'

const TESTS = join(import.meta.dirname, '..')

interface Task {
  readonly type: string
  readonly name: string
  readonly suite?: Task
  readonly tasks?: readonly Task[]
}

const isNamed = (task: Task | undefined): task is Task => task !== undefined && task.name !== ''

function titleOf(task: Task): string {
  return isNamed(task.suite) ? `${titleOf(task.suite)} > ${task.name}` : task.name
}

function* testsIn(task: Task): Iterable<Task> {
  if (task.type === 'test') yield task
  for (const each of task.tasks ?? []) yield* testsIn(each)
}

const fileOf = (path: string): string => relative(TESTS, path).split(sep).join('/')

beforeEach(({ task, skip }) => {
  const reason = notOn(SUITE_ENGINE, fileOf(task.file.filepath)).get(titleOf(task as Task))
  if (reason !== undefined) skip(reason)
})

// biome-ignore lint/correctness/noEmptyPattern: what comes first are fixtures, by this pattern
afterAll(({}, file) => {
  // A test that was renamed would run, and fail, or be left out without anybody knowing.
  const titles = [...testsIn(file as Task)].map(titleOf)
  for (const title of notOn(SUITE_ENGINE, fileOf(file.file.filepath)).keys()) expect(titles).toContain(title)
})
