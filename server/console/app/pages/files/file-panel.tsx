import { Download } from 'lucide-react'
import { useState } from 'react'
import { api, at, dataOf, refresh, type Schema, useAnswer, useSession } from '../../api/client.ts'
import { announce, useAction } from '../../components/announcements.tsx'
import { Button, ButtonLink } from '../../components/button.tsx'
import { CopyText } from '../../components/code.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { downloadFile } from '../../components/download.ts'
import { sizeText } from '../../components/format.ts'
import { Facts, Queried } from '../../components/page.tsx'
import { SidePanel } from '../../components/panel.tsx'
import { Time } from '../../components/time.tsx'
import { filesText as text } from '../../text/files.ts'

/** One stored file, and what can be done with it. */
export function FilePanel({ id, close }: { id: string; close: () => void }) {
  const query = useAnswer(['files', 'one', id], () => api.GET('/std/v1/files/{id}', at({ id })))
  return (
    <SidePanel
      label={text.panel}
      title={<span className="break-all">{query.data?.filename ?? text.panel}</span>}
      closeLabel={text.close}
      close={close}
    >
      <Queried query={query} gone={text.gone}>
        {file => <Shown file={file} close={close} />}
      </Queried>
    </SidePanel>
  )
}

function Shown({ file, close }: { file: Schema<'File'>; close: () => void }) {
  const { id, filename, purpose, bytes, created_at, expires_at } = file
  const { can } = useSession()
  const [isRemoving, setRemoving] = useState(false)
  const { mutate: save, isPending } = useAction(
    () => downloadFile(id, filename),
    () => text.downloaded(filename),
  )
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap gap-2">
        <Button icon={Download} busy={isPending} onClick={() => save()} label={text.download} />
        {can('user:write') && (
          <>
            {purpose === 'batch' && <ButtonLink href={`/batches?create=${id}`} label={text.batch} />}
            <Button danger onClick={() => setRemoving(true)} label={text.remove} />
          </>
        )}
      </div>
      <Facts
        rows={[
          [text.facts.id, <CopyText key="id">{id}</CopyText>],
          [text.facts.purpose, text.purposes[purpose] ?? purpose],
          [text.facts.size, sizeText(bytes)],
          [text.facts.created, <Time key="created" at={created_at} />],
          [text.facts.expires, expires_at === undefined ? text.never : <Time at={expires_at} />],
        ]}
      />
      {isRemoving && (
        <Confirm
          title={text.removeTitle(filename)}
          action={text.removeAct}
          close={() => setRemoving(false)}
          act={async () => {
            await dataOf(api.DELETE('/std/v1/files/{id}', at({ id })))
            announce('good', text.removed(filename))
            close()
            void refresh('files', 'list')
          }}
        >
          {text.removeText}
        </Confirm>
      )}
    </div>
  )
}
