import { Failure } from '../../core/failure.ts'
import type { Client } from '../client/client.ts'
import { type ModelStatus, ModelStatusList } from './status.ts'

/**
 * Returns the models that the server offers. Returns none for an older server, or for a token without the read scope:
 * such a caller can still use a model by its id.
 */
export async function fetchOfferedModels(client: Client, signal?: AbortSignal): Promise<ModelStatus[]> {
  try {
    const path = '/api/model-status'
    return (await client.ask({ method: 'GET', path, answer: ModelStatusList, ...(signal ? { signal } : {}) })).models
  } catch (thrown) {
    if (thrown instanceof Failure && (thrown.status === 404 || thrown.code === 'insufficient_scope')) return []
    throw thrown
  }
}
