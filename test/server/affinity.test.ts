import { expect, test } from 'vitest'
import { fakeModel, startApp } from '../_app.ts'

test('of several engines, each conversation stays with the one that has computed it', async () => {
  await using app = await startApp({ models: [fakeModel('fake', [], { replicas: { min: 2, max: 2 } })] })
  const status = async () => (await (await app.fetch('/api/system/status')).json()) as { engines: { state: string }[] }
  await expect.poll(async () => (await status()).engines.filter(({ state }) => state === 'ready').length).toBe(2)
  const texts = { one: 'first '.repeat(400), other: 'second '.repeat(400) }
  const turns: Record<string, object[]> = { one: [], other: [] }
  async function turn(of: keyof typeof texts): Promise<string> {
    const content = turns[of]!.length === 0 ? texts[of] : `Go on, ${texts[of].slice(0, 100)}`
    turns[of]!.push({ role: 'user', content })
    const answer = await app.fetch('/std/v1/chat/completions', { body: { model: 'fake', messages: turns[of] } })
    const { choices } = (await answer.json()) as { choices: { message: object }[] }
    turns[of]!.push(choices[0]!.message)
    const job = await app.fetch(`/api/jobs/${answer.headers.get('x-job-id')}`)
    return ((await job.json()) as { worker_id: string }).worker_id
  }
  const [one, other] = [await turn('one'), await turn('other')]
  expect(other).not.toBe(one)
  const rounds = ['one', 'other', 'other', 'one', 'one', 'other'] as const
  const served: string[] = []
  for (const name of rounds) served.push(await turn(name))
  expect(served).toEqual(rounds.map(name => (name === 'one' ? one : other)))
})
