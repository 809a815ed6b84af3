import { z } from 'zod'
import type { EnginePlacement as Placement } from '../../core/models/engine-placement.ts'
import { array, namedObject, nullableInteger, nullableString, oneOf, string } from '../../core/schemas/fields.ts'

export const EnginePlacement = namedObject('EnginePlacement', 'Where an engine runs.', {
  on: oneOf(
    '`split`: some layers on GPUs, the others on the processor. `elsewhere`: on a server that infer does not start.',
    ['gpu', 'split', 'processor', 'elsewhere'],
  ),
  gpu_layers: nullableInteger('Layers on GPUs, the output counted as one; null if the engine chooses them itself.'),
  layers: nullableInteger('All layers of the model; null if the engine chooses where they are.'),
  detail: string('The same as a part of a sentence, with the reason why GPUs are not used.'),
  advice: nullableString('Command that lets it use the GPUs of the machine; null if none is needed.'),
  longer_context: array(
    'What would make its context longer, as sentences. Empty if the memory has room for the context that people need.',
    string('A way, with the context in tokens.'),
  ),
})

export const placementView = ({
  on,
  layers,
  detail,
  advice,
  longerContext,
}: Placement): z.input<typeof EnginePlacement> => ({
  on,
  gpu_layers: layers?.gpu ?? null,
  layers: layers?.total ?? null,
  detail,
  advice,
  longer_context: [...longerContext],
})
