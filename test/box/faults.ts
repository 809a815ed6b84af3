import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../e2e/_home.ts'
import type { Box, Disturbance, Fault } from './box.ts'
import type { Holder } from './cards.ts'

/** How long the box is left alone after a fault. */
const calmMs = 10_000
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`

function begin(box: Box, kind: Fault['kind'], name: string, model: string | null = null): Fault {
  const fault: Fault = { kind, name, at: box.now(), ended: null, model, result: '', steps: [] }
  box.faults.push(fault)
  box.say(name)
  return fault
}

function end(box: Box, fault: Fault, result: string): void {
  fault.ended = box.now()
  fault.result = result
  box.say(result)
}

/** Another program takes half of a card the moment that it is free, and gives it back later. */
const foreignProcess: Disturbance = async box => {
  const fault = begin(box, 'foreign', 'another program wants 12 GiB of a card')
  const { card, end: leave } = await box.cards.occupy(12 * 1_024)
  const taken = box.now()
  await delay(calmMs)
  leave()
  end(box, fault, `it had them on gpu${card} from ${seconds(taken)} to ${seconds(box.now())}`)
  await delay(calmMs)
}

const answeringEngine = (box: Box): Promise<Holder> =>
  until('an engine in the middle of an answer', () => {
    const answering = new Set([...box.open].filter(call => call.began !== null).map(call => call.model))
    return box.cards.holders().find(one => one.pid !== null && one.model !== null && answering.has(one.model))
  })

/** An engine ends by a signal in the middle of an answer, as after a fault of its own code. */
const crashedEngine: Disturbance = async box => {
  const victim = await answeringEngine(box)
  const fault = begin(box, 'crash', `the engine of ${victim.model} crashes`, victim.model)
  process.kill(victim.pid!, 'SIGSEGV')
  await until(
    'a new engine after the crash',
    () => box.cards.holders().find(one => one.model === victim.model && one !== victim),
    60_000,
  )
  end(box, fault, `it was loaded again after ${seconds(box.now() - fault.at)}`)
  await delay(calmMs)
}

/** A card falls off the bus under an engine that answers, and comes back. */
const lostCard: Disturbance = async box => {
  const { model, card } = await answeringEngine(box)
  const id = `gpu${card}`
  const fault = begin(box, 'lost', `${id} falls off the bus under ${model}`, model)
  const step = async (what: string, withinMs: number, holds: () => unknown, from = fault.at) => {
    await until(what, holds, 60_000)
    fault.steps.push({ what, ms: box.now() - from, withinMs })
  }
  box.cards.lose(card)
  const isNamed = async () => {
    const { devices } = await box.server.ask<{ devices: { id: string; fault: string | null }[] }>('/api/system/status')
    return devices.some(one => one.id === id && one.fault !== null)
  }
  const isOpen = () => [...box.open].some(one => one.model === model && one.began !== null && one.began < fault.at)
  await step('its open answers have ended', 10_000, () => !isOpen())
  await step(`the server names ${id}`, 10_000, isNamed)
  const isMoved = () => box.cards.holders().some(one => one.model === model && one.card !== card)
  await step(`${model} is on the other card`, 20_000, isMoved)
  const isServed = () =>
    box.calls.some(one => one.model === model && one.outcome === 'served' && one.began! > fault.at && isMoved())
  await step(`${model} answers there`, 20_000, isServed)
  await step(`infer doctor names ${id}`, 40_000, async () =>
    (await box.server.doctor()).includes(`${id} cannot be used`),
  )
  box.cards.restore(card)
  const back = box.now()
  await step(`${id} is used again`, 20_000, () => box.cards.holders().some(one => one.card === card), back)
  end(box, fault, fault.steps.map(({ what, ms }) => `${what}: ${seconds(ms)}`).join(', '))
  await delay(calmMs)
}

/** The server is killed and started again. Its engines must have ended before that, by themselves. */
const killedServer: Disturbance = async box => {
  const fault = begin(box, 'kill', 'kill -9 of the server')
  await box.server.end('SIGKILL')
  await until('the end of all engines after kill -9', () => box.cards.holders().length === 0)
  const empty = box.now()
  await box.server.start()
  const ready = box.now()
  end(
    box,
    fault,
    `cards were empty after ${seconds(empty - fault.at)}, the server was ready ${seconds(ready - empty)} later`,
  )
  await delay(calmMs)
}

/** In this order, each on a box that has recovered from the one before. */
export const faults: readonly Disturbance[] = [foreignProcess, crashedEngine, lostCard, killedServer]
