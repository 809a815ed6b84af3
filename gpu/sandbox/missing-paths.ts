import { existsSync } from 'node:fs'
import type { Model } from '../../core/models/model.ts'

type Named = Pick<Model, 'id' | 'sandbox' | 'sandbox_read' | 'sandbox_write'>

/**
 * Returns a sentence for each path of `sandbox_read` and `sandbox_write` that does not exist on this machine. Engines
 * start without such a path, because it may belong to an optional device. Empty for a model without a sandbox.
 */
export const missingSandboxPaths = (model: Named): string[] =>
  (['sandbox_read', 'sandbox_write'] as const).flatMap(field =>
    (model.sandbox === 'none' ? [] : model[field])
      .filter(path => !existsSync(path))
      .map(
        path =>
          `'${field}' of '${model.id}' names ${path}, which does not exist here, so its engine does not see it. Create it before the engine starts, or correct infer.yaml.`,
      ),
  )
