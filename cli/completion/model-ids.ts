import { join } from 'node:path'
import { z } from 'zod'
import { dataDirectory, readConfig } from '../../core/config.ts'
import { defaultModels } from '../../core/models/defaults.ts'
import { openClient } from '../client.ts'

export interface KnownModel {
  id: string
  tasks: readonly string[]
}

/** Somebody waits at a prompt: a server that does not answer in this time has nothing to offer. */
const patienceMs = 700

const Models = z.object({ data: z.array(z.object({ id: z.string(), tasks: z.array(z.string()).default([]) })) })

/** Ids of models from the server, or without one from the configuration. Never throws; nothing known is an empty list. */
export async function knownModels(dataDirFlag: string | undefined): Promise<KnownModel[]> {
  const dataDir = dataDirectory(dataDirFlag)
  try {
    const signal = AbortSignal.timeout(patienceMs)
    const { data } = await openClient(dataDir).ask({ method: 'GET', path: '/std/v1/models', answer: Models, signal })
    return data
  } catch {
    try {
      const { models } = readConfig(join(dataDir, 'infer.yaml'), false)
      return models.length > 0 ? models : defaultModels()
    } catch {
      return []
    }
  }
}
