import { expect, test } from 'vitest'
import { fieldsOf, schemaOf } from '../../../cli/commands/task-fields.ts'
import { tasks } from '../../../core/schemas/task.ts'
import { taskRecords } from '../../../core/tasks/registry.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'
import { jobServer } from '../_jobs.ts'

test('list has every task, and with a server the models for each', async () => {
  const alone = await infer(['task', 'list', '--data-dir', temporaryFolder()])
  expect([alone.exitCode, alone.stderr]).toEqual([
    0,
    'See the inputs and results of a task: infer task show text-to-image\n',
  ])
  for (const task of tasks) expect(alone.stdout).toContain(`\n${task} `)
  const { env } = await jobServer({})
  expect((await infer(['task', 'list'], { env })).stdout).toMatch(
    /^slug\/text-to-image +text to image +demo\/picture$/m,
  )
  const listed = json(await infer(['task', 'list', '--json'], { env })) as {
    tasks: { task: string; models: string[] }[]
  }
  expect(listed.tasks.find(({ task }) => task === 'std/chat-completion')?.models).toEqual(['tiny-chat'])
})

test('show has the inputs and the result of a task', async () => {
  const { exitCode, stdout } = await infer(['task', 'show', 'text-to-image'])
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(
    /^slug\/text-to-image {2}text to image\n\ninputs\n {2}prompt +text, required\. What to create\.\n/,
  )
  expect(stdout).toMatch(/^ {2}num_inference_steps +whole number 1 to 50\. Steps of the model/m)
  expect(stdout).toMatch(/^ {2}output_format +"png" or "jpeg" or "jpg" or "webp"\. Format of the files/m)
  expect(stdout).toMatch(/^ {2}seed +whole number from 0\. Seed of the random choices/m)
  expect(stdout).toMatch(/\nresult\n(.*\n)* {2}images\[\]\.url +text\. Where to read the file/m)
  expect((await infer(['task', 'show', 'std/chat-completion'])).stdout).toMatch(
    /^ {2}choices\[\]\.message\.content +text\. The answer/m,
  )
  expect(json(await infer(['task', 'show', 'rerank', '--json']))).toMatchObject({
    task: 'std/rerank',
    inputs: { $schema: expect.any(String) as string },
    result: { $schema: expect.any(String) as string },
  })
})

test('an unknown task is refused with the nearest name', async () => {
  const { exitCode, stderr } = await infer(['task', 'show', 'text-to-imag'])
  expect([exitCode, stderr]).toEqual([
    64,
    "Error: There is no task 'text-to-imag'. Did you mean 'text-to-image'? See: infer task list\n",
  ])
})

test.each(taskRecords.map(record => [record.id, record] as const))('%s has fields with types', (_, record) => {
  const inputs = fieldsOf(schemaOf(record.request, 'input'), { deep: false })
  const result = fieldsOf(schemaOf(record.result, 'output'), { deep: true })
  for (const fields of [inputs, result]) {
    expect(fields.length).toBeGreaterThan(0)
    expect(fields.filter(({ type }) => type === '')).toEqual([])
  }
})
