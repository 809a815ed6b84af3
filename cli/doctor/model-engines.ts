import { existsSync } from 'node:fs'
import { Failure } from '../../core/failure.ts'
import type { Model } from '../../core/models/model.ts'
import { readLocal } from '../../core/models/recognition/read-local.ts'
import type { Recognition, SuggestedEngine } from '../../core/models/recognition/recognition.ts'
import { suggestedEngines } from '../../core/models/recognition/recognition.ts'
import { presets } from '../../gpu/presets/presets.ts'
import { type FoundEngine, installAdvice, isInstalled } from '../models/engine-programs.ts'
import { type Finding, fine, warning } from './finding.ts'

/** A configured model whose files say which engines can run it. */
export interface EngineOfModel {
  id: string
  engine: string
  /** What its files are; null if infer does not know, for example for a text model in a GGUF file. */
  recognition: Recognition | null
  /** Engines that can run it and are installed. */
  installed: readonly SuggestedEngine[]
}

/** Says which engines are installed beside the built-in one. None is needed, so nothing is wrong without them. */
export function checkEngines(engines: readonly FoundEngine[]): Finding {
  const found = engines.flatMap(({ engine, path }) => (path === undefined ? [] : [`${engine} (${path})`]))
  return fine('engines', ['built in: gguf', ...found].join(', '))
}

/** Checks that the engine of each model can run its files, and is installed. */
export function checkModelEngines(models: readonly EngineOfModel[]): Finding {
  const name = 'model engines'
  const faults = models.flatMap(model => faultOf(model) ?? [])
  if (faults.length === 0) return fine(name, models.length === 0 ? 'none to check' : 'installed, and fit their files')
  return warning(name, faults.map(({ fault }) => fault).join('; '), faults.map(({ advice }) => advice).join(' '))
}

function faultOf({ id, engine, recognition, installed }: EngineOfModel): { fault: string; advice: string } | undefined {
  const named = suggestedEngines.find(one => one === engine)
  if (named === undefined || recognition === null) return undefined
  const { engines, is, tasks } = recognition
  const fits = engines.includes(named)
  if (fits && installed.includes(named)) return undefined
  const other = installed[0]
  if (!fits)
    return {
      fault: `${id}: ${engine} cannot run ${is}`,
      advice: `In infer.yaml, set engine: ${other ?? engines[0]!} for '${id}'.${other === undefined ? ` ${installAdvice(engines[0]!, tasks)}` : ''}`,
    }
  return {
    fault: `${id}: ${engine} is not installed`,
    advice:
      installAdvice(named, tasks) +
      (other === undefined ? '' : `. Or set engine: ${other} for '${id}' in infer.yaml, which is installed.`),
  }
}

/** Measures for `checkModelEngines`: reads headers and configuration files of local models. Never rejects. */
export async function modelEngines(
  models: readonly Model[],
  { dataDir, path }: { dataDir: string; path: string },
): Promise<EngineOfModel[]> {
  const local = models.filter(
    ({ enabled, engine, source }) =>
      enabled && source !== undefined && suggestedEngines.some(one => one === engine) && existsSync(source),
  )
  return Promise.all(
    local.map(async ({ id, engine, source, tasks }) => {
      const recognition = await recognised(source!)
      const found = { dataDir, path, tasks }
      const installed = (recognition?.engines ?? []).filter(one => presets.has(one) && isInstalled(one, found))
      return { id, engine, recognition, installed }
    }),
  )
}

async function recognised(source: string): Promise<Recognition | null> {
  try {
    const found = await readLocal(source)
    return found === 'gguf' ? null : found
  } catch (thrown) {
    // What is wrong with the file is in the error of its engine.
    if (thrown instanceof Failure) return null
    throw thrown
  }
}
