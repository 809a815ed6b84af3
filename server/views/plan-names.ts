import { z } from 'zod'
import type { ModelName } from '../../core/models/model-names.ts'
import { fallbackText, nameText } from '../../core/models/name-texts.ts'
import { array, nullable, nullableInteger, objects, oneOf, string } from '../../core/schemas/fields.ts'

const owner = () => string('Id of the model or of the adapter whose name it is.')

/** What a plan says of the names of its model, and of the models that answer in its place. */
export const planNames = {
  requested_name: nullable(
    z.object({
      name: string('The name.'),
      kind: oneOf('What it is.', ['alias', 'profile', 'adapter']),
      of: owner(),
      detail: string('Whose name it is and what it shares, as a sentence.'),
    }),
    'What the requested name is, if it is not the id of the model. `fallbacks` are then those of this name.',
  ),
  names: objects('Further names of the model and of its adapters that the token may use. All have the same engine.', {
    name: string('The name.'),
    kind: oneOf('`profile`: with other defaults or another price.', ['alias', 'profile']),
    of: owner(),
  }),
  fallbacks: objects('Models that the token may use and that answer in its place, in this order.', {
    model_id: string('Id of the other model.'),
    when: array(
      '`failed`: the model fails. `context`: the prompt is longer than its context.',
      z.enum(['failed', 'context']),
    ),
    wait_seconds: nullableInteger('Also when a request would wait longer than this; null however long it waits.'),
    detail: string('The same as a sentence.'),
  }),
}
const PlanNames = z.object(planNames)

const ownerOf = ({ listed }: ModelName): string => listed.adapterId ?? listed.modelId

/**
 * Returns what a plan for a request under this name says of names. `names`: those that the token may use; `usable`: whether a
 * model may answer it.
 */
export function planNamesView(
  requested: ModelName,
  names: readonly ModelName[],
  usable: (modelId: string) => boolean,
): z.input<typeof PlanNames> {
  const { name, kind, model } = requested
  const detail = nameText(requested)
  const of = kind === 'adapter' ? model.id : ownerOf(requested)
  return {
    requested_name: kind === 'id' || detail === null ? null : { name, kind, of, detail },
    names: names.flatMap(one =>
      one.model.id === model.id && (one.kind === 'alias' || one.kind === 'profile')
        ? [{ name: one.name, kind: one.kind, of: ownerOf(one) }]
        : [],
    ),
    fallbacks: (model.fallbacks ?? [])
      .filter(fallback => usable(fallback.model))
      .map(fallback => ({
        model_id: fallback.model,
        when: [...fallback.when],
        wait_seconds: fallback.wait === undefined ? null : Math.ceil(fallback.wait / 1000),
        detail: fallbackText(kind === 'id' ? model.id : name, fallback),
      })),
  }
}
