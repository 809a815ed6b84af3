import { expect, test, vi } from 'vitest'
import type { OpenPoolLauncher } from '../../../gpu/pool-launches.ts'
import { fakeModel, startApp } from '../../_app.ts'
import { fakePool } from '../../gpu/_fake-pool.ts'

const pool = vi.hoisted(() => ({ open: undefined as OpenPoolLauncher | undefined }))
vi.mock('../../../gpu/pool-launchers.ts', () => ({
  openPoolLauncher: ((...options) => pool.open!(...options)) satisfies OpenPoolLauncher,
}))

const endless = 'mode:stream,tokens=100000,rate=50'

/** An app with gateway processes, and the pool of its only model. */
async function withFarModel() {
  const lab = await fakePool()
  pool.open = lab.open
  const app = await startApp({
    gateway_processes: 2,
    pools: { lab: { kind: 'slurm', card_memory: '80GiB' } },
    models: [fakeModel('far', [], { pools: ['lab'], devices: 1, memory: '60GiB', concurrency: 32 })],
  })
  const say = (content: string, stream = false) =>
    app.fetch('/std/v1/chat/completions', {
      body: { model: 'far', messages: [{ role: 'user', content }], stream },
    })
  const answeredByFronts = async (): Promise<number> =>
    Number(/^infer_front_requests_total (\d+)$/m.exec(await (await app.fetch('/metrics')).text())![1])
  const waiting = async () =>
    ((await (await app.fetch('/api/system/status')).json()) as { waiting: unknown[] }).waiting.length
  const launch = async () => (await lab.list()).find(({ state }) => state === 'running')!
  /** How many requests the engine works on. */
  const running = async () => {
    const stats = await fetch(`${(await launch()).endpoint!.origin}/stats`)
    return ((await stats.json()) as { running: number }).running
  }

  /** Sends chats until the gateway processes answer all of those that come at a time. */
  async function warm(): Promise<void> {
    await expect
      .poll(async () => {
        const before = await answeredByFronts()
        const answers = await Promise.all(Array.from({ length: 4 }, () => say('Hello')))
        for (const answer of answers) await answer.text()
        await app.fetch('/api/jobs/job_00000000000000000000000000')
        return (await answeredByFronts()) - before
      })
      .toBe(4)
  }

  /** Begins so many streams in the gateway processes. Their whole texts, once they have ended. */
  async function beginStreams(count: number): Promise<Promise<string>[]> {
    return await Promise.all(
      Array.from({ length: count }, async () => {
        const [begun, whole] = (await say(endless, true)).body!.tee()
        await begun.getReader().read()
        return [new Response(whole).text()]
      }),
    ).then(texts => texts.flat())
  }

  return { lab, say, waiting, launch, running, warm, beginStreams, [Symbol.asyncDispose]: app[Symbol.asyncDispose] }
}

test('calls in gateway processes end like those in control: their engine cannot be reached, can be again, and is killed', async () => {
  await using far = await withFarModel()
  const { lab, say, waiting, launch, running, warm, beginStreams } = far
  await warm()
  const { launchId } = await launch()
  const streams = await beginStreams(4)
  const slow = Array.from({ length: 4 }, () => say('mode:slow,ms=3000'))
  await expect.poll(running).toBe(8)
  lab.state.pending = 'The cards that it needs are in use.'
  lab.setReached(launchId, false)
  for (const text of await Promise.all(streams))
    expect(text).toContain("The engine of 'far' cannot be reached any more. Trying again may help.")
  await expect.poll(waiting).toBe(4)

  lab.setReached(launchId, true)
  for (const answer of await Promise.all(slow)) expect(answer.status).toBe(200)
  await warm()
  expect((await launch()).launchId).toBe(launchId)

  const others = await beginStreams(4)
  process.kill((await launch()).pid!, 'SIGKILL')
  for (const text of await Promise.all(others))
    expect(text).toContain("The engine of 'far' has ended. Engine exited (SIGKILL).")
})
