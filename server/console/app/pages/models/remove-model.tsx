import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { api, dataOf } from '../../api/client.ts'
import { tasksQuery } from '../../api/queries.ts'
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
  const removing = (query: { dry_run?: 'true'; delete_files?: 'true' }) =>
    dataOf(api.DELETE('/api/models/{id}', { params: { path: { id }, query } }))
  const preview = useQuery({
    queryKey: ['models', 'remove', id],
    queryFn: () => removing({ dry_run: 'true' }),
    gcTime: 0,
  })
  const act = async () => {
    await removing(deletesFiles ? { delete_files: 'true' } : {})
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
        <Checkbox
          label={modelsText.deleteFiles}
          checked={deletesFiles}
          onChange={event => setDeletesFiles(event.target.checked)}
        />
      </div>
    </Confirm>
  )
}
