import { keepPreviousData } from '@tanstack/react-query'
import { Upload } from 'lucide-react'
import { useState } from 'react'
import { ApiFailure, api, refresh, type Schema, useAnswer, useSession } from '../../api/client.ts'
import type { paths } from '../../api/types.generated.ts'
import { uploadFile } from '../../api/upload.ts'
import { announce } from '../../components/announcements.tsx'
import { Button } from '../../components/button.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { optionsOf, SelectField, TextField } from '../../components/fields.tsx'
import { formNumber, formText } from '../../components/form-text.ts'
import { sizeText } from '../../components/format.ts'
import { Empty, GuideLink, PageHeading, Queried } from '../../components/page.tsx'
import { PanelTable, RowLink, WithPanel } from '../../components/panel.tsx'
import { columnsOf } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { useAddress } from '../../components/use-address.ts'
import { filesText as text } from '../../text/files.ts'
import { shellText } from '../../text/shell.ts'
import { FilePanel } from './file-panel.tsx'

type Stored = Schema<'File'>
type Query = NonNullable<paths['/std/v1/files']['get']['parameters']['query']>

const columns = columnsOf<Stored, keyof typeof text.columns>(text.columns, {
  name: ({ id, filename }) => (
    <RowLink param="file" id={id}>
      <span className="break-all">{filename}</span>
    </RowLink>
  ),
  purpose: ({ purpose }) => text.purposes[purpose] ?? purpose,
  size: { number: true, show: ({ bytes }) => sizeText(bytes) },
  created: { aside: true, show: ({ created_at }) => <Time at={created_at} /> },
  expires: {
    aside: true,
    show: ({ expires_at }) => (expires_at === undefined ? text.never : <Time at={expires_at} />),
  },
})

/** Uploads files of this computer, one after another, and says which was refused. */
function UploadFiles({ close }: { close: () => void }) {
  const save = async (form: FormData) => {
    const files = form.getAll('files').filter(one => one instanceof File)
    const options = { purpose: formText(form, 'purpose'), keepSeconds: formNumber(form, 'keep') ?? undefined }
    for (const file of files)
      await uploadFile(file, options).catch(thrown => {
        if (!(thrown instanceof ApiFailure) || files.length === 1) throw thrown
        throw new ApiFailure(text.uploadFailed(file.name, thrown.message), thrown.status, thrown.code, 'files')
      })
    announce('good', text.uploaded(files.length))
    close()
  }
  return (
    <FormDialog
      title={text.upload}
      action={text.uploadAct}
      save={form => save(form).finally(() => void refresh('files'))}
      close={close}
    >
      {faultOf => (
        <>
          <TextField
            label={text.chosen}
            hint={text.chosenHint}
            name="files"
            type="file"
            multiple
            required
            className="py-1"
            error={faultOf('files') ?? faultOf('file')}
          />
          <SelectField
            label={text.purpose}
            name="purpose"
            options={optionsOf(
              text.purposes,
              Object.keys(text.purposes).filter(one => one !== 'batch_output'),
            )}
            error={faultOf('purpose')}
          />
          <SelectField
            label={text.keep}
            name="keep"
            defaultValue=""
            options={optionsOf(text.keeps)}
            error={faultOf('expires_after')}
          />
        </>
      )}
    </FormDialog>
  )
}

/** The files of the organization, newest first, with one of them beside the list. */
export default function FilesPage() {
  const [params, change] = useAddress('push')
  const { can } = useSession()
  const [isUploading, setUploading] = useState(false)
  const purpose = Object.keys(text.purposes).find(one => one === params.get('purpose')) as Query['purpose']
  const after = params.get('after') ?? undefined
  const open = params.get('file') ?? undefined
  const query = useAnswer(
    ['files', 'list', purpose, after],
    () => api.GET('/std/v1/files', { params: { query: { limit: 50, purpose, after, order: 'desc' } } }),
    { placeholderData: keepPreviousData },
  )
  const mayUpload = can('user:write')
  const upload = <Button primary icon={Upload} onClick={() => setUploading(true)} label={text.upload} />
  return (
    <>
      <PageHeading title={shellText.pages.files} about={text.about} actions={mayUpload && upload} />
      <WithPanel
        panel={open !== undefined && <FilePanel key={open} id={open} close={() => change({ file: undefined })} />}
      >
        <div className="mb-3 w-52">
          <SelectField
            label={text.purpose}
            value={purpose ?? ''}
            none={text.any}
            change={one => change({ purpose: one, after: undefined, file: undefined })}
            options={optionsOf(text.purposes)}
          />
        </div>
        <Queried query={query} lines={5}>
          {({ data, has_more, last_id }) => (
            <PanelTable
              label={text.list}
              param="file"
              columns={columns}
              rows={data}
              next={has_more ? last_id : null}
              names={text}
            >
              {purpose ? (
                <Empty title={text.noMatch} />
              ) : (
                <Empty title={text.none}>
                  <p>{text.noneHelp}</p>
                  {mayUpload && upload}
                  <GuideLink guide="files-and-batches" label={text.guide} />
                </Empty>
              )}
            </PanelTable>
          )}
        </Queried>
      </WithPanel>
      {isUploading && <UploadFiles close={() => setUploading(false)} />}
    </>
  )
}
