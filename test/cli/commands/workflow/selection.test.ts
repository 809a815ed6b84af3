import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'
import { fakeModel, startApp } from '../../../_app.ts'
import { infer, json, temporaryFolder } from '../../_infer.ts'

const chat = (content: string, more: object = {}) => ({
  model_id: 'fake',
  task: 'std/chat-completion',
  inputs: { messages: [{ role: 'user', content }] },
  ...more,
})
const answer = (content: string) => ({ choices: [{ index: 0, message: { role: 'assistant', content } }] })

test('one node runs with a given result, or all up to a node; changed inputs run it again', async () => {
  const app = await startApp({ models: [fakeModel('fake')] })
  onTestFinished(() => app[Symbol.asyncDispose]())
  const env = { INFER_URL: app.url, INFER_TOKEN: app.secret }
  const run = (...args: string[]) => infer(args, { env })
  const folder = temporaryFolder()
  const file = join(folder, 'three.yaml')
  const workflow = {
    name: 'Three',
    tags: ['daily'],
    parameters: { word: { type: 'string' } },
    dag: {
      nodes: {
        first: chat('one ${input.word}'),
        second: chat('two ${nodes.first.result.choices[0].message.content}', { pin: answer('kept') }),
        third: chat('three ${nodes.second.result.choices[0].message.content}'),
        broken: chat('${nodes.third.result.choices[0].message.wrong}'),
      },
    },
  }
  writeFileSync(file, stringify(workflow))
  writeFileSync(join(folder, 'first.json'), JSON.stringify(answer('given')))

  const one = await run('workflow', 'run', file, '--only', 'second', '--pin', `first=@${join(folder, 'first.json')}`)
  expect([one.exitCode, one.stderr]).toEqual([0, expect.stringContaining('first: completed, pinned')])
  const upTo = await run('workflow', 'run', file, '--to', 'third', '--use-pins', '--tag', 'trial', '--json')
  const execution = json(upTo) as { id: string; tags: string[]; nodes: { node_id: string; pinned: boolean }[] }
  expect(execution.nodes.map(({ node_id, pinned }) => [node_id, pinned])).toEqual([
    ['second', true],
    ['third', false],
  ])
  expect(execution.tags).toEqual(['trial'])
  const shown = await run('execution', 'show', execution.id)
  expect(shown.stdout).toMatch(/\ntags +trial\n/)
  expect(shown.stdout).toMatch(/\nsecond +completed +fake +pinned/)
  const listed = await run('execution', 'list', '--tag', 'daily')
  expect(listed.stdout).not.toContain(execution.id)
  expect(listed.stdout.trimEnd().split('\n')).toHaveLength(2)

  const estimated = await run('workflow', 'estimate', file, '--to', 'third')
  expect([estimated.exitCode, estimated.stderr]).toEqual([0, ''])
  expect(estimated.stdout).toMatch(/\nsecond +fake +0\.00 +0\.00 .* 2 runs\n/)
  expect(estimated.stdout).toMatch(
    /\ncost: 0\.00, at most 0\.00\ntime: .*\nlongest way: first → second → third \(3 of 4 nodes\)\n/,
  )

  const lacking = await run('workflow', 'run', file, '--only', 'third')
  expect([lacking.exitCode, lacking.stderr]).toEqual([64, expect.stringContaining("needs the result of 'second'")])
  const noJson = await run('workflow', 'run', file, '--only', 'second', '--pin', 'first=text')
  expect([noJson.exitCode, noJson.stderr]).toEqual([64, expect.stringContaining('--pin first is not JSON')])

  const message = JSON.stringify([{ role: 'user', content: 'changed' }])
  const again = await run('execution', 'retry', execution.id, '--change', `third.messages=${message}`, '--json')
  const retried = json(again) as { id: string }
  await run('execution', 'watch', retried.id)
  const compared = await run('execution', 'compare', execution.id, retried.id)
  expect(compared.stdout).toMatch(/\nthird +completed +completed .* inputs, result\n/)
  expect(compared.stdout).toMatch(/\nsecond +completed +completed .* =( \(inputs not compared\))?\n/)
  const inputs = json(await run('execution', 'show', retried.id, '--json')) as {
    nodes: { node_id: string; resolved_inputs: unknown }[]
  }
  expect(inputs.nodes.find(({ node_id }) => node_id === 'third')).toMatchObject({
    resolved_inputs: { messages: [{ content: 'changed' }] },
  })
})
