import type { Command } from '@commander-js/extra-typings'
import { type Api, openClient } from '../client/client.ts'
import { storedSentence } from '../client/refusal.ts'
import { benchmarkRate } from '../models/benchmark-text.ts'
import { fetchStatus } from '../status/live.ts'
import { memoryNotes } from '../status/memory-notes.ts'
import { peerText } from '../status/peer-text.ts'
import { deviceNotes, layersText, placementNotes } from '../status/placement-notes.ts'
import { poolText } from '../status/pool-text.ts'
import { savedNotes, savedOf } from '../status/saved-notes.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import { lengthText, placesText, sizeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer ps`: lists the loaded models, one line per engine. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .description(
      'Lists the loaded models: memory, devices, layers on GPUs, slots in use, and the tokens per second of a benchmark. Says why GPUs are not used, how many conversations are saved, and which models running workflows need next.',
    )
    .action(async ({ dataDir, json }) => {
      const { engines, models, devices, pools, peers, time } = await fetchStatus(openClient(dataDir))
      if (json) return terminal.json({ engines, saved_conversations: savedOf(models) })
      for (const { paused } of devices) if (paused) terminal.remark(storedSentence(paused.reason))
      const saved = savedNotes(models)
      if (engines.length === 0) {
        terminal.remark('No model is loaded. See: infer ls')
        for (const text of saved) terminal.remark(text)
        return
      }
      const measured = new Map(models.flatMap(({ model_id, benchmark }) => (benchmark ? [[model_id, benchmark]] : [])))
      const rate = measured.size > 0 ? ['tokens/s'] : []
      terminal.table(
        ['model', 'state', 'memory', 'on', 'GPU layers', 'busy', ...rate, 'loaded for', 'idle for'],
        engines.map(engine =>
          rowOf(engine, rate.length > 0 ? [benchmarkRate(measured.get(engine.model_id))] : [], time),
        ),
        { optional: [...rate, 'GPU layers', 'loaded for', 'idle for'] },
      )
      // An older server has none.
      for (const pool of pools ?? []) terminal.remark(poolText(pool))
      for (const peer of peers ?? []) terminal.remark(peerText(peer))
      for (const text of deviceNotes(engines, devices)) terminal.remark(text)
      for (const { text, isAdvice } of placementNotes(engines))
        if (isAdvice) terminal.warn(text)
        else terminal.remark(text)
      const notes = [
        ...memoryNotes(engines),
        ...keptNotes(engines, time),
        ...machineNotes(engines, time),
        ...adapterNotes(engines),
        ...saved,
      ]
      for (const text of notes) terminal.remark(text)
      for (const { model_id, upcoming } of engines) if (upcoming) terminal.remark(`${printable(model_id)}: ${upcoming}`)
    })
  withExamples(command, [
    ['infer ps', 'as a table'],
    ['infer ps --json', 'for a program'],
  ])
}

/** Returns a sentence for each engine that an earlier server has loaded. */
const keptNotes = (engines: readonly Api['EngineStatus'][], now: number): string[] =>
  engines.flatMap(({ model_id, taken_over_at }) =>
    taken_over_at
      ? `${printable(model_id)} was kept over a restart of the server ${lengthText(now - taken_over_at)} ago.`
      : [],
  )

/** Returns sentences about the machines of pools: when they end engines, and how long those waited; none from an older server. */
const machineNotes = (engines: readonly Api['EngineStatus'][], now: number): string[] =>
  engines.flatMap(({ model_id, pool, ends_at, queued_ms }) => {
    if (!pool) return []
    const name = printable(model_id)
    const waited = Math.round((queued_ms ?? 0) / 1_000)
    return [
      ...(waited > 0 ? [`${name} waited ${lengthText(waited)} for a machine of the pool '${printable(pool)}'.`] : []),
      ...(ends_at
        ? [`${name}: its machine ends it in ${lengthText(ends_at - now)}; another engine takes its place before.`]
        : []),
    ]
  })

/** Returns sentences about the LoRA adapters of the loaded models; none from an older server. */
function adapterNotes(engines: readonly Api['EngineStatus'][]): string[] {
  const names = new Map(engines.map(({ model_id, adapters }) => [model_id, adapters ?? []]))
  return [...names].flatMap(([id, adapters]) =>
    adapters.length === 0 ? [] : [`${printable(id)} serves its adapters too: ${adapters.map(printable).join(', ')}.`],
  )
}

/** Returns one row of the table. `rate`: the cell of the benchmark, if there is one. `now` in epoch seconds. */
function rowOf(engine: Api['EngineStatus'], rate: readonly string[], now: number): string[] {
  const { model_id, state, memory_bytes, busy, slots, started_at, last_used_at } = engine
  return [
    printable(model_id),
    state,
    sizeText(memory_bytes),
    placesText(engine, ' ') || '-',
    layersText(engine),
    `${busy}/${slots}`,
    ...rate,
    state === 'ready' ? lengthText(now - started_at) : '-',
    state === 'ready' && busy === 0 ? lengthText(now - last_used_at) : '-',
  ]
}
