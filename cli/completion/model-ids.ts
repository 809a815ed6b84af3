import { join } from 'node:path'
import { z } from 'zod'
import { dataDirectory } from '../../core/config.ts'
import { readConfig } from '../../core/models/config.ts'
import { offeredModels } from '../../core/models/defaults.ts'
import type { Model } from '../../core/models/model.ts'
import { slugsOf } from '../../core/models/slugs.ts'
import { openClient } from '../client/client.ts'
import { fetchOfferedModels } from '../models/offered-models.ts'
import { answerTimeoutMs } from './ask-server.ts'

export interface KnownModel {
  id: string
  tasks: readonly string[]
}

const Models = z.object({ data: z.array(z.object({ id: z.string(), tasks: z.array(z.string()).default([]) })) })

/** Returns every slug with its task, from the server or, if none runs, from the configuration. Never throws. */
export async function knownSlugs(dataDirFlag: string | undefined): Promise<KnownModel[]> {
  const dataDir = dataDirectory(dataDirFlag)
  try {
    const models = await fetchOfferedModels(openClient(dataDir), AbortSignal.timeout(answerTimeoutMs))
    return models
      .filter(({ enabled }) => enabled !== false)
      .flatMap(({ slugs = {} }) => Object.entries(slugs).map(([task, id]) => ({ id, tasks: [task] })))
  } catch {
    return configured(dataDir).flatMap(model => Array.from(slugsOf(model), ([task, id]) => ({ id, tasks: [task] })))
  }
}

/** Returns model ids from the server or, if none runs, from the configuration. Never throws; may be empty. */
export async function knownModels(dataDirFlag: string | undefined): Promise<KnownModel[]> {
  const dataDir = dataDirectory(dataDirFlag)
  try {
    const signal = AbortSignal.timeout(answerTimeoutMs)
    const { data } = await openClient(dataDir).ask({ method: 'GET', path: '/std/v1/models', answer: Models, signal })
    return data
  } catch {
    return configured(dataDir)
  }
}

function configured(dataDir: string): Model[] {
  try {
    return [...offeredModels(readConfig(join(dataDir, 'infer.yaml'), false))]
  } catch {
    return []
  }
}
