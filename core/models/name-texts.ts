import { durationText } from '../quantity-text.ts'
import type { ModelName } from './model-names.ts'
import type { Fallback } from './name-fields.ts'

/** Says whose name a name is, and what it shares with that model; null for the id of a model. */
export function nameText({ name, kind, profile = {}, listed: { modelId, adapterId } }: ModelName): string | null {
  const owner = adapterId === undefined ? `'${modelId}'` : `'${adapterId}', a LoRA adapter of '${modelId}'`
  switch (kind) {
    case 'id':
      return null
    case 'adapter':
      return `'${name}' is a LoRA adapter of '${modelId}': it shares the engine, the queue and the slots of that model.`
    case 'alias':
      return `'${name}' is an alias of ${owner}.`
    case 'profile': {
      const own = Object.keys(profile)
      const differs = own.length === 0 ? 'the same engine' : `the same engine, with its own ${own.join(', ')}`
      return `'${name}' is a profile of ${owner}: ${differs}.`
    }
  }
}

/** Says when a fallback answers in place of the model with this id. */
export function fallbackText(id: string, { model, when, wait }: Fallback): string {
  const conditions = [
    ...(when.includes('failed') ? [`when '${id}' fails`] : []),
    ...(when.includes('context') ? ['when the prompt is longer than its context'] : []),
    ...(wait === undefined ? [] : [`when a request would wait longer than ${durationText(wait)}`]),
  ]
  const last = conditions.pop()!
  return `'${model}' answers ${conditions.length === 0 ? last : `${conditions.join(', ')} or ${last}`}.`
}
