/** Texts of the folders of conversations. */
export const folderText = {
  folder: (name: string) => `Folder ${name}`,
  moveOne: (title: string) => `Move “${title}” to …`,
  move: 'Move',
  moved: (folder: string | null) =>
    folder === null ? 'The conversation is in no folder now.' : `The conversation is in the folder “${folder}” now.`,
  to: 'Folder',
  none: 'No folder',
  made: 'New folder',
  madeHint: 'Makes a folder of this name. Empty: the folder above.',
  name: 'Name',
  rename: (name: string) => `Rename the folder “${name}”`,
  renamed: (name: string) => `The folder is “${name}” now.`,
  remove: (name: string) => `Delete the folder “${name}”`,
  removeText: 'The conversations in it stay; they are in no folder then.',
  forPresets: 'The folder “Presets” is for presets. Choose another name.',
} as const
