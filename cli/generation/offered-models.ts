import { Failure } from '../../core/failure.ts'
import type { Client } from '../client.ts'
import { ModelStatusList } from '../models/status.ts'
import type { OfferedModel } from './target.ts'

/**
 * The models that the server offers. None when it does not tell: an older server, or a token that may write and not
 * read, is no reason to refuse a question to a model by its name.
 */
export async function fetchOfferedModels(client: Client, signal?: AbortSignal): Promise<OfferedModel[]> {
  try {
    const path = '/api/model-status'
    return (await client.ask({ method: 'GET', path, answer: ModelStatusList, ...(signal ? { signal } : {}) })).models
  } catch (thrown) {
    if (thrown instanceof Failure && (thrown.status === 404 || thrown.code === 'insufficient_scope')) return []
    throw thrown
  }
}
