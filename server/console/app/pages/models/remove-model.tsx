import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { api } from '../../api/client.ts'
import { tasksQuery, useAnswer } from '../../api/queries.ts'
import { useAnnounce } from '../../components/announcements.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Checkbox } from '../../components/fields.tsx'
import { Queried } from '../../components/page.tsx'
import { modelsText } from '../../text/models.ts'
import { ConfigLines } from './config-lines.tsx'

/** Asks before a model is removed, and shows the lines that infer.yaml loses. */
export function RemoveModel({ id, close }: { id: string; close: () => void }) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const [, go] = useLocation()
  const [deletesFiles, setDeletesFiles] = useState(false)
  const remove = (query: { dry_run?: 'true'; delete_files?: 'true' }) =>
    api.DELETE('/api/models/{id}', { params: { path: { id }, query } })
  const preview = useAnswer(['models', 'remove', id], () => remove({ dry_run: 'true' }), { gcTime: 0 })
  const act = async () => {
    await remove(deletesFiles ? { delete_files: 'true' } : {})
    announce('good', modelsText.removed(id))
    void queries.invalidateQueries({ queryKey: ['models'] })
    void queries.invalidateQueries({ queryKey: tasksQuery.queryKey })
    go('/models')
  }
  return (
    <Confirm
      title={modelsText.removeOf(id)}
      action={modelsText.confirmRemove}
      act={act}
      close={close}
      isReady={preview.isSuccess}
    >
      <div className="space-y-3">
        <p>{modelsText.removeAbout}</p>
        <Queried query={preview}>{({ lines }) => <ConfigLines {...lines} />}</Queried>
        <Checkbox label={modelsText.deleteFiles} checked={deletesFiles} change={setDeletesFiles} />
      </div>
    </Confirm>
  )
}
