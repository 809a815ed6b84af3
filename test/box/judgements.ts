import type { Box, Call } from './box.ts'
import type { VulkanTrial } from './vulkan.ts'
import type { Waits } from './waits.ts'

/** What is known when everything has ended. */
export interface Ending {
  box: Box
  waits: Waits
  /** By id of acknowledged work: what is wrong with it. */
  lost: ReadonlyMap<string, string>
  /** Processes of the server that ran on after its end. */
  orphans: readonly number[]
  /** Actors and faults that failed, or did not end. */
  problems: readonly string[]
  vulkan: VulkanTrial
  /** What `infer db check` found; empty if nothing. */
  database: string
}

export interface Judgement {
  name: string
  /** Everything that contradicts the name, a line each. */
  contradictions: (ending: Ending) => string[]
}

/** A wait that has no need of an explanation, milliseconds. The observer looks every quarter of a second. */
const shortMs = 1_500

/** Whether the server was down meanwhile, or the engine crashed or lost its card in the middle of the answer. */
const excused = (call: Call, { faults }: Box): boolean =>
  faults.some(({ kind, at, ended, model }) => {
    if (ended === null || call.ended < at) return false
    if (kind === 'kill') return call.at < ended
    return (kind === 'crash' || kind === 'lost') && call.model === model && call.began !== null && call.began < at
  })

const about = ({ actor, model, at, ended, outcome, detail }: Call): string =>
  `${actor}: ${model} at ${(at / 1_000).toFixed(1)} s, ${outcome} after ${((ended - at) / 1_000).toFixed(1)} s: ${detail}`

export const judgements: readonly Judgement[] = [
  {
    name: 'no acknowledged work is lost',
    contradictions: ({ box, lost }) =>
      box.acknowledged.flatMap(({ kind, id }) => (lost.has(id) ? `${kind} ${id}: ${lost.get(id)}` : [])),
  },
  {
    // No request is wrong, and none exceeds a limit, so a plain queue would have served all of them.
    name: 'no request is refused that a plain queue would have served',
    contradictions: ({ box }) => box.calls.filter(call => call.outcome === 'refused' && !excused(call, box)).map(about),
  },
  {
    name: 'no answer breaks off, except by the crash, the loss of a card and the kill',
    contradictions: ({ box }) => box.calls.filter(call => call.outcome === 'broken' && !excused(call, box)).map(about),
  },
  {
    name: 'every wait is explained by a sentence',
    contradictions: ({ box, waits: { seen } }) => [
      ...[...seen.values()].flatMap(({ id, model, unexplained }) =>
        unexplained.size > 0 ? `${id} waited for ${model} with this reason: ${[...unexplained].join('; ')}` : [],
      ),
      ...box.calls
        .filter(call => call.outcome === 'served' && call.began! - call.at > shortMs && !seen.has(call.jobId ?? ''))
        .map(call => `${about(call)} began after ${Math.round(call.began! - call.at)} ms and was not seen waiting`),
    ],
  },
  {
    name: 'no engine finds too little memory, except while another program takes it',
    contradictions: ({ box: { cards, faults } }) =>
      cards.refused
        .filter(({ at }) => !faults.some(one => one.kind === 'foreign' && one.at < at && at < (one.ended ?? at)))
        .map(({ model, at }) => `${model} at ${(at / 1_000).toFixed(1)} s`),
  },
  {
    name: 'a card that falls off is named, its model moves in time, and it is used again',
    contradictions: ({ box: { faults } }) =>
      faults.flatMap(({ steps }) =>
        steps.flatMap(({ what, ms, withinMs }) =>
          ms > withinMs ? `${what}: only after ${(ms / 1_000).toFixed(1)} s` : [],
        ),
      ),
  },
  {
    name: 'a model on a Vulkan device answers from there, and leaves nothing',
    contradictions: ({ vulkan }) => vulkan.wrong,
  },
  {
    name: 'no process stays behind',
    contradictions: ({ orphans, box }) => [
      ...orphans.map(pid => `process ${pid} runs on`),
      ...box.cards
        .holders()
        .map(one => `${one.model ?? one.program} still holds ${one.mebibytes} MiB of gpu${one.card}`),
    ],
  },
  {
    name: 'the database is whole',
    contradictions: ({ database }) => (database === '' ? [] : [database]),
  },
  {
    // Otherwise the run shows less than it says.
    name: 'every actor was served, and every fault took place',
    contradictions: ({ box, problems }) => {
      const kinds = new Set(box.acknowledged.map(({ kind }) => kind))
      return [
        ...problems,
        ...['batch', 'image job', 'execution'].filter(kind => !kinds.has(kind)).map(kind => `no ${kind} was accepted`),
        ...['coding agent', 'chat user']
          .map(
            name => [name, box.calls.filter(call => call.actor === name && call.outcome === 'served').length] as const,
          )
          .flatMap(([name, served]) => (served < 5 ? `only ${served} requests of the ${name} were served` : [])),
      ]
    },
  },
]
