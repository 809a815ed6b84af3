import { useQuery } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { ApiFailure, api, dataOf, refresh, type Schema } from '../../api/client.ts'
import { everyPage } from '../../api/every-page.ts'
import { uploadFile } from '../../api/upload.ts'
import { announce } from '../../components/announcements.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { optionsOf, SelectField, TextField } from '../../components/fields.tsx'
import { formText } from '../../components/form-text.ts'
import { PickerField } from '../../components/picker-field.tsx'
import { batchesText } from '../../text/batches.ts'
import { beginningOf, endpointIn } from './batch-file.ts'

const text = batchesText.form

interface CreateBatchProps {
  /** The id of a stored file to begin with. */
  stored: string | undefined
  created: (id: string) => void
  close: () => void
}

/** Creates a batch from a file of this computer, or from one that is stored. */
export function CreateBatch({ stored, created, close }: CreateBatchProps) {
  const { data: read = [] } = useQuery({ queryKey: ['files', 'batch'], queryFn: batchFiles })
  const [chosen, choose] = useState(stored ?? '')
  // What was uploaded before the server refused the rest is not uploaded again.
  const uploaded = useRef<{ file: File; id: string }>(undefined)
  const uploadOnce = async (file: File) => {
    const before = uploaded.current
    if (
      before?.file.name === file.name &&
      before.file.size === file.size &&
      before.file.lastModified === file.lastModified
    )
      return before.id
    const { id } = await uploadFile(file, { purpose: 'batch' })
    uploaded.current = { file, id }
    void refresh('files')
    return id
  }
  const save = async (form: FormData) => {
    const given = form.get('file')
    const file = given instanceof File && given.size > 0 ? given : formText(form, 'input_file_id')
    if (file === '') throw new ApiFailure(text.noFile, 0, 'missing', 'file')
    const endpoint = formText(form, 'endpoint') || endpointIn(await beginningOf(file))
    if (endpoint === undefined) throw new ApiFailure(text.noEndpoint, 0, 'missing', 'endpoint')
    const body = {
      input_file_id: typeof file === 'string' ? file : await uploadOnce(file),
      endpoint,
      completion_window: formText(form, 'completion_window'),
    }
    const { id } = await dataOf(api.POST('/std/v1/batches', { body }))
    announce('good', batchesText.created)
    void refresh('batches')
    created(id)
  }
  const options = read.map(({ id, filename }) => ({ id, name: `${filename} (${id})` }))
  // It is chosen before the files are read.
  if (stored !== undefined && !read.some(({ id }) => id === stored)) options.push({ id: stored, name: stored })
  return (
    <FormDialog title={batchesText.create} action={batchesText.create} save={save} close={close}>
      {faultOf => (
        <>
          {stored === undefined && (
            <TextField
              label={text.file}
              hint={text.fileHint}
              name="file"
              type="file"
              accept=".jsonl,.ndjson,.json,.txt"
              className="py-1"
              error={faultOf('file')}
            />
          )}
          <input type="hidden" name="input_file_id" value={chosen} />
          <PickerField
            label={stored === undefined ? text.stored : text.file}
            {...(stored === undefined ? { none: '–' } : {})}
            value={chosen}
            choices={options}
            change={choose}
            error={faultOf('input_file_id')}
          />
          <TextField
            label={text.endpoint}
            hint={text.endpointHint}
            name="endpoint"
            autoComplete="off"
            placeholder="/v1/chat/completions"
            error={faultOf('endpoint')}
          />
          <SelectField
            label={text.window}
            name="completion_window"
            defaultValue="24h"
            options={optionsOf(text.windows)}
            error={faultOf('completion_window')}
          />
        </>
      )}
    </FormDialog>
  )
}

/** The stored files that are for batches, newest first. */
async function batchFiles(): Promise<readonly Schema<'File'>[]> {
  const pages = await everyPage(async after => {
    const query = { purpose: 'batch', limit: 1_000, after } as const
    const { data, has_more, last_id } = await dataOf(api.GET('/std/v1/files', { params: { query } }))
    return { data: { files: data, next_cursor: has_more ? last_id : null } }
  })
  return pages.flatMap(({ files }) => files)
}
