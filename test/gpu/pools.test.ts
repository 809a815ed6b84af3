import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { FleetOptions } from '../../gpu/fleet-options.ts'
import { cluster, fakePool } from './_fake-pool.ts'
import { chat, cpu, fake, fleetOf, send } from './_fleet.ts'
import { until } from './launcher/_launch.ts'

/** A fleet with the pool `lab`, on a machine without cards. */
async function withLab(models: ReturnType<typeof fake>[], { nodes, settings, ...more }: Setting = {}) {
  const lab = await fakePool(nodes)
  const opened = await fleetOf(models, {
    pools: () => ({ lab: cluster(settings) }),
    openPoolLauncher: lab.open,
    ...more,
  })
  const engines = () => opened.fleet.snapshot().residents
  return { ...opened, lab, engines }
}
type Setting = { nodes?: Record<string, number>; settings?: object } & Partial<FleetOptions>

const inLab = (id: string, of: object = {}) => fake(id, [], { pools: ['lab'], memory: '60GiB', ...of })

describe('a model of a pool', () => {
  test('runs there, on whole cards, and what it asks for is said to the launcher', async () => {
    const model = inLab('big', { devices: 2, pools: [{ pool: 'lab', time_limit: '4h' }] })
    const { fleet, lab, engines } = await withLab([model])
    expect((await chat(fleet, model)).text).toContain('Hello')
    const [engine] = engines()
    expect(engine).toMatchObject({ pool: 'lab', devices: ['lab/n1/gpu0', 'lab/n1/gpu1'] })
    expect(engine!.placement.detail).toBe("in the pool 'lab' on 2 GPUs, machine n2")
    expect(engine!.bytes).toBe(2 * Math.floor(80 * 2 ** 30 * 0.97))
    const [launch] = lab.started
    expect(launch).toMatchObject({ needs: { cards: 2, cpus: 8, maxMs: 14_400_000 }, visibleDevices: {} })
    const pool = fleet.snapshot().pools[0]
    expect(pool).toMatchObject({ name: 'lab', cards: 4, usedCards: 2, engines: 1, unknown: null })
    await fleet.unload('big')
    expect(engines()).toEqual([])
  })

  test('of this machine and a pool starts here, and in the pool where this machine has no memory', async () => {
    const both = (id: string) => fake(id, [], { pools: ['local', 'lab'] })
    const models = [both('one'), both('two'), both('three')]
    const { fleet, lab, engines } = await withLab(models)
    for (const model of models) await fleet.load(model)
    expect(engines().map(({ modelId, pool }) => [modelId, pool])).toEqual([
      ['one', undefined],
      ['two', undefined],
      ['three', 'lab'],
    ])
    expect(lab.started).toHaveLength(1)
    expect((await chat(fleet, models[2]!)).text).toContain('Hello')
  })

  test('without pools nothing of them is in a launch', async () => {
    const local = fake('local')
    const { fleet, lab } = await withLab([local])
    await fleet.load(local)
    expect(lab.started).toEqual([])
    expect((await fleet.plan(local)).devices.map(({ id }) => id)).toEqual([cpu.id])
  })

  test('has as many engines as the limits of the pool allow: an idle one makes room', async () => {
    const models = [inLab('one'), inLab('two'), inLab('three')]
    const { fleet, engines } = await withLab(models, { settings: { max_cards: 2 } })
    for (const model of models) await fleet.load(model)
    expect(
      engines()
        .filter(({ state }) => state === 'ready')
        .map(({ modelId }) => modelId),
    ).toEqual(['two', 'three'])
  })
})

test('a pool that did not answer at first has devices as soon as its launcher says that something has changed', async () => {
  const lab = await fakePool()
  lab.state.fault = 'It is not connected yet.'
  const { fleet } = await fleetOf([inLab('big')], { pools: () => ({ lab: cluster() }), openPoolLauncher: lab.open })
  const pool = () => fleet.snapshot().pools[0]
  expect(pool()).toMatchObject({ cards: 0, unknown: 'It is not connected yet.' })
  lab.state.fault = null
  const since = performance.now()
  lab.changed()
  await until(() => pool()!.cards === 4)
  expect(performance.now() - since).toBeLessThan(5_000)
})

describe('a caller who waits', () => {
  test('is told why the launch is pending, and is served when it runs', async () => {
    const model = inLab('big')
    const { fleet, lab } = await withLab([model])
    lab.state.pending = 'The cards that it needs are in use.'
    const answer = chat(fleet, model)
    await until(() => fleet.activity('big').pending !== undefined)
    expect(fleet.activity('big')).toMatchObject({ status: 'loading', pending: 'The cards that it needs are in use.' })
    expect((await fleet.plan(model)).detail).toBe(
      "The engine of 'big' waits for a machine of its pool: The cards that it needs are in use.",
    )
    await lab.run()
    expect((await answer).text).toContain('Hello')
    expect(fleet.activity('big')).toMatchObject({ status: 'warm' })
    expect(fleet.activity('big').pending).toBeUndefined()
  })
})

test('no request is suspected of the end of an engine whose machine is gone', async () => {
  const model = inLab('big')
  const { fleet, lab } = await withLab([model])
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  using other = await fleet.lease(model, { waitMs: 30_000 })
  const [one, two] = [send(lease, 'mode:slow,ms=60000'), send(other, 'mode:slow,ms=60000')]
  await lab.lose(`${lease.engineId}-1`)
  for (const { answer } of [one, two])
    expect((await answer).failure).toMatchObject({ code: 'worker_error', retryable: true })
  expect([lease.othersAtEnd, other.othersAtEnd]).toEqual([undefined, undefined])
})

describe('an engine that cannot be reached', () => {
  test('gets no request: what has sent nothing runs on another one, and it ends when that is ready', async () => {
    const model = inLab('big')
    const { fleet, lab, engines } = await withLab([model])
    using lease = await fleet.lease(model, { waitMs: 30_000 })
    const first = lease.engineId
    const running = send(lease, 'mode:slow,ms=60000')
    const other = fleet.take('big')!
    lab.setReached(`${first}-1`, false)
    const { failure } = await running.answer
    expect(failure).toMatchObject({
      code: 'worker_error',
      message: "The engine of 'big' cannot be reached any more. Trying again may help.",
      unsent: false,
    })
    expect(lease.othersAtEnd).toBeUndefined()
    expect(fleet.grants.lend(other)).toBeUndefined()
    other.release()
    expect(engines()[0]!.placement.detail).toMatch(/machine n2, which cannot be reached now$/)
    lease.release()
    using next = await fleet.lease(model, { waitMs: 30_000 })
    expect(next.engineId).not.toBe(first)
    expect((await send(next, 'Hello').answer).text).toContain('Hello')
    await until(() => engines().length === 1)
    const listed = (await lab.list()).map(({ engineId, state }) => [engineId, state])
    expect(Object.fromEntries(listed)).toEqual({ [first]: 'gone', [next.engineId]: 'running' })
  })

  test('and answers again before another one is ready serves on', async () => {
    const model = inLab('big')
    const { fleet, lab, engines } = await withLab([model])
    await fleet.load(model)
    const [{ engineId } = { engineId: '' }] = engines()
    lab.state.pending = 'The cards that it needs are in use.'
    lab.setReached(`${engineId}-1`, false)
    await until(() => engines()[0]!.placement.detail.includes('cannot be reached'))
    const answer = chat(fleet, model)
    await until(() => lab.started.length === 2)
    lab.setReached(`${engineId}-1`, true)
    expect((await answer).text).toContain('Hello')
    await until(() => engines().length === 1)
    expect(engines()).toMatchObject([{ engineId, state: 'ready' }])
  })
})

describe('an engine that loads', () => {
  /** A fleet whose first launch does not become ready. */
  async function withSlowFirst(of: object = {}) {
    const model = inLab('big', of)
    const lab = await fakePool()
    const { fleet } = await fleetOf([model], {
      pools: () => ({ lab: cluster() }),
      openPoolLauncher: async () => {
        const launcher = await lab.open()
        return {
          ...launcher,
          start(launch, signal) {
            const slow = lab.started.length === 0 ? ['--ready-after', '600000'] : []
            return launcher.start({ ...launch, argv: [...launch.argv, ...slow] }, signal)
          },
        }
      },
    })
    const answer = chat(fleet, model)
    await until(async () => (await lab.list()).some(({ state }) => state === 'running'))
    return { lab, answer, first: lab.started[0]!.launchId }
  }

  test('and cannot be reached is started elsewhere, before its cluster knows: who waits gets an answer', async () => {
    const { lab, answer, first } = await withSlowFirst({ load_timeout: '3s' })
    lab.state.isDead = true
    lab.setReached(first, false)
    expect((await answer).text).toContain('Hello')
    expect((await lab.list()).find(({ launchId }) => launchId === first)!.state).toBe('running')
  })

  test('and whose machine is gone is started again, once: who waits gets an answer', async () => {
    const { lab, answer, first } = await withSlowFirst()
    await lab.lose(first)
    expect((await answer).text).toContain('Hello')
    expect(lab.started).toHaveLength(2)
  })
})

test('an engine whose machine ends it is succeeded: no request fails, and a stream that is too long ends with an error', async () => {
  const model = inLab('big', { concurrency: 4 })
  const { fleet, lab, engines } = await withLab([model])
  await fleet.load(model)
  const [first] = engines()
  using lease = await fleet.lease(model, { waitMs: 5_000 })
  const stream = send(lease, 'mode:stream,tokens=100000,rate=50', { stream: true })
  await stream.begun
  let isOver = false
  const ended = stream.answer.finally(() => (isOver = true))
  lab.endIn(lab.started[0]!.launchId, 4_000)
  const answers: Awaited<ReturnType<typeof chat>>[] = []
  let mostReady = 0
  // oxlint-disable-next-line no-unmodified-loop-condition -- the end of the stream sets it.
  while (!isOver) {
    answers.push(await chat(fleet, model))
    mostReady = Math.max(mostReady, engines().filter(({ state }) => state === 'ready').length)
  }
  expect(mostReady).toBe(2)
  expect((await ended).failure).toMatchObject({ code: 'worker_error' })
  expect(answers.filter(({ failure, text }) => failure || !text.includes('Hello'))).toEqual([])
  await until(() => engines().every(({ engineId }) => engineId !== first!.engineId))
  expect(engines()).toMatchObject([{ modelId: 'big', state: 'ready' }])
  expect(lab.started).toHaveLength(2)
})

test('a server that leaves its engines to the next, without a keeper, ends its own and none of a pool', async () => {
  const [far, here] = [inLab('far'), fake('here')]
  const { fleet, lab } = await withLab([far, here])
  for (const model of [far, here]) await fleet.load(model)
  const [pid] = fleet.snapshot().residents.flatMap(one => (one.modelId === 'here' ? one.pid! : []))
  await fleet.leave()
  expect((await chat(fleet, here)).text).toContain('Hello')
  await fleet.close(0)
  expect(existsSync(`/proc/${pid}`)).toBe(false)
  expect(await lab.list()).toMatchObject([
    { modelId: 'far', state: 'running', note: { running: expect.anything() as object } },
  ])
})

describe('a pool that does not answer', () => {
  test('at the start: the reason is shown, its models wait, others run', async () => {
    const [model, local] = [inLab('big'), fake('local')]
    const lab = await fakePool()
    lab.state.fault = 'sinfo does not answer.'
    const { fleet } = await fleetOf([model, local], { pools: () => ({ lab: cluster() }), openPoolLauncher: lab.open })
    await fleet.load(local)
    expect(await fleet.plan(model)).toMatchObject({
      status: 'wait',
      detail: "'big' waits for the pool 'lab': sinfo does not answer.",
      devices: [{ id: 'lab', fault: 'sinfo does not answer.' }],
    })
    expect(fleet.snapshot().pools).toMatchObject([{ name: 'lab', cards: 0, unknown: 'sinfo does not answer.' }])
  })

  test('later: its engines run on and serve', async () => {
    const model = inLab('big')
    const { fleet, lab, engines, log } = await withLab([model])
    await fleet.load(model)
    lab.state.fault = 'squeue does not answer.'
    lab.changed()
    await until(() => log.lines.some(line => line.includes('It is not known which engines run {"pool":"lab"}')))
    expect((await chat(fleet, model)).text).toContain('Hello')
    expect(engines()).toMatchObject([{ modelId: 'big', state: 'ready', pool: 'lab' }])
    lab.state.fault = null
  })
})
