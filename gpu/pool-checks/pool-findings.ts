import { broken, type InspectionFinding } from '../../core/inspection.ts'

/** Findings of pools of several kinds. Pure. */

/** A finding of an error whose text is what happened, as a sentence, and then what to do. */
export function faultFinding(name: string, message: string, otherwise: string): InspectionFinding {
  const [, what = message, advice = ''] = /^(.*?[^.])\.(?: (?=[A-Z'])(.*))?$/s.exec(message) ?? []
  return broken(name, what, advice || otherwise)
}

/** A model asks for more GPUs than a node has: `most`. `detail`: the GPUs of the pool. */
export const tooManyAsked = (detail: string, needed: number, most: number): InspectionFinding =>
  broken(
    'GPUs',
    `${detail}; a model asks for ${needed}, and no node has more than ${most}`,
    "Lower 'devices' of the model: an engine uses GPUs of one node.",
  )
