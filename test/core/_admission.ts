import type { Admission, Admitted } from '../../core/admission/admission.ts'
import { Model } from '../../core/models/model.ts'
import { noModel } from '../../core/models/no-model.ts'
import type { NewJob } from '../../core/store/store.ts'
import { noLimits } from './accounts/_caller.ts'

type Named = Pick<NewJob, 'organizationId' | 'tokenId' | 'task' | 'modelId'>

/** Work as admission grants it, for tests without admission. */
export const admittedWork = ({ organizationId, tokenId, task, modelId }: Named): Admitted =>
  ({
    organizationId,
    tokenId,
    task,
    model: modelId === noModel.id ? noModel : Model.parse({ id: modelId }),
    hold: 0,
    spender: {
      organizationId,
      originId: tokenId,
      tokenName: 'a token',
      organizationLimit: null,
      tokenLimit: null,
      parents: [],
    },
  }) as unknown as Admitted

/** An admission that admits everything. */
export function admitsAll(models: {
  find(id: string): Model | undefined
}): Pick<Admission, 'admit' | 'readmit' | 'holdNode'> {
  return {
    holdNode: async () => {},
    admit: ({ organizationId, tokenId }, { task, modelId }) => admittedWork({ organizationId, tokenId, task, modelId }),
    readmit: ({ modelId }) => (modelId === noModel.id ? noModel : models.find(modelId)!),
  }
}

/** The caller in tests. */
export const requester = (organizationId: string, tokenId = 'tok_test') => ({
  organizationId,
  tokenId,
  token: { name: 'a token', models: null, limits: {} } as never,
  limits: noLimits,
})
