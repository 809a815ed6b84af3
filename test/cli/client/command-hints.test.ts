import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { withCommands } from '../../../cli/client/refusal.ts'

test.each([
  ["The model 'x' does not exist here. GET /api/model-status lists those that do.", 'infer ls lists those that do.'],
  ['No longer offered here. `GET /std/v1/models` lists those that are.', 'here. infer ls lists'],
  ['It is run again: POST /api/workflow-executions/exec_1/retry.', 'again: infer execution retry exec_1.'],
  ['Cancel it: `POST /api/jobs/job_1/cancel`.', 'Cancel it: infer job cancel job_1.'],
  ['Put it into a workflow: POST /api/workflows/run.', 'workflow: infer workflow run.'],
  ['See: GET /api/workflows/wf_1/executions lists them.', 'See: infer execution list --workflow wf_1 lists'],
  ['GET /api/workflows lists them.', 'infer workflow list lists them.'],
  ['Nothing to change.', 'Nothing to change.'],
])('%s', (sentence, part) => expect(withCommands(sentence)).toContain(part))

test('every route that a failure names has a command', () => {
  // The terminal does not use the routes for fal's clients, nor those of an engine.
  const paths = globSync('{core,gpu,server}/**/*.ts').filter(
    path => !/^(server\/surfaces\/fal|gpu\/engines)\//.test(path),
  )
  const failures = paths.flatMap(
    path => readFileSync(path, 'utf8').match(/new Failure\((?:(?!new Failure)[^])*?\)\n/g) ?? [],
  )
  const naming = failures.filter(text => /(GET|POST|PUT|DELETE) \//.test(text))
  expect(naming.length).toBeGreaterThan(2)
  const ids = (text: string) => text.replaceAll(/\$\{[^}]*\}/g, 'id')
  expect(naming.map(text => withCommands(ids(text))).filter(text => /(GET|POST|PUT|DELETE) \//.test(text))).toEqual([])
})
