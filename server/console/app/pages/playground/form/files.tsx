import { useMutation } from '@tanstack/react-query'
import type { RefObject } from 'react'
import { inputKeepSeconds, uploadFile } from '../../../api/upload.ts'

/** Addresses at which this page can show files that it knows, by their id. */
const known = new Map<string, string>()
/** More are forgotten: each may hold a file in the memory of the browser. */
const maxKnown = 50

export function rememberPreview(id: string, url: string): void {
  known.set(id, url)
  if (known.size <= maxKnown) return
  const [oldest, old] = known.entries().next().value!
  known.delete(oldest)
  if (old.startsWith('blob:')) URL.revokeObjectURL(old)
}

/** Returns where a file can be shown: a file that was chosen here or comes from the library; undefined for others. */
export const previewOf = (value: string): string | undefined =>
  known.get(value) ?? (/^(data:image\/|\/files\/)/.test(value) ? value : undefined)

/** Stores files, and remembers how they look; `take` gets the id of each. */
export const useUpload = (take: (id: string) => void) =>
  useMutation({
    mutationFn: (file: File) => uploadFile(file, { purpose: 'user_data', keepSeconds: inputKeepSeconds }),
    onSuccess({ id }, file) {
      rememberPreview(id, URL.createObjectURL(file))
      take(id)
    },
  })

interface FileInputProps {
  ref: RefObject<HTMLInputElement | null>
  kind: 'image' | 'video' | 'audio'
  label: string
  take: (file: File) => void
}

/** A control that nobody sees, which a button clicks to let a person choose a file. */
export const FileInput = ({ ref, kind, label, take }: FileInputProps) => (
  <input
    ref={ref}
    type="file"
    hidden
    accept={`${kind}/*`}
    aria-label={label}
    onChange={({ target }) => {
      const [file] = target.files ?? []
      if (file) take(file)
      target.value = ''
    }}
  />
)
