// Verifies proofs with golang.org/x/mod (sumdb/note, sumdb/tlog), which the authors of the hub did not write.
//
// Reads one JSON object a line, answers "ok" or "refused: …" to each. A tlog-proof or a consistency file is
// taken apart here, by the words of its specification; signatures, hashes and proofs are checked by x/mod only.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type task struct {
	Kind, Key string
	Leaf      []byte
	Proof     []byte
	Older     []byte
}

func head(signed []byte, key string) (tree tlog.Tree, err error) {
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return tree, err
	}
	opened, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return tree, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) < 4 || lines[0] != verifier.Name() {
		return tree, fmt.Errorf("no checkpoint of %s", verifier.Name())
	}
	if tree.N, err = decimal(lines[1]); err != nil {
		return tree, err
	}
	tree.Hash, err = hash(lines[2])
	return tree, err
}

func decimal(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && (n < 0 || strconv.FormatInt(n, 10) != text) {
		err = fmt.Errorf("%q is no decimal", text)
	}
	return n, err
}

func hash(text string) (h tlog.Hash, err error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err == nil && len(raw) != tlog.HashSize {
		err = fmt.Errorf("a hash has %d bytes", len(raw))
	}
	copy(h[:], raw)
	return h, err
}

// parts: the number behind word, the hashes, the signed note.
func parts(file, word string) (n int64, path []tlog.Hash, signed []byte, err error) {
	halves := strings.SplitN(file, "\n\n", 2)
	lines := strings.Split(halves[0], "\n")
	if len(halves) != 2 || !strings.HasPrefix(lines[0], word+" ") {
		return 0, nil, nil, fmt.Errorf("no line %q, or no note", word)
	}
	if n, err = decimal(lines[0][len(word)+1:]); err != nil {
		return 0, nil, nil, err
	}
	for _, line := range lines[1:] {
		h, err := hash(line)
		if err != nil {
			return 0, nil, nil, err
		}
		path = append(path, h)
	}
	return n, path, []byte(halves[1]), nil
}

func check(t task) error {
	file, word := string(t.Proof), "old"
	if t.Kind == "inclusion" {
		const header = "c2sp.org/tlog-proof@v1\n"
		if !strings.HasPrefix(file, header) {
			return fmt.Errorf("no tlog-proof")
		}
		file, word = file[len(header):], "index"
	}
	n, path, signed, err := parts(file, word)
	if err != nil {
		return err
	}
	tree, err := head(signed, t.Key)
	if err != nil {
		return err
	}
	if t.Kind == "inclusion" {
		return tlog.CheckRecord(tlog.RecordProof(path), tree.N, tree.Hash, n, tlog.RecordHash(t.Leaf))
	}
	older, err := head(t.Older, t.Key)
	if err != nil {
		return err
	}
	if older.N != n {
		return fmt.Errorf("the proof begins at %d, the older checkpoint has %d", n, older.N)
	}
	return tlog.CheckTree(tlog.TreeProof(path), tree.N, tree.Hash, older.N, older.Hash)
}

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var t task
		err = json.Unmarshal(line, &t)
		if err == nil {
			err = check(t)
		}
		if err == nil {
			fmt.Fprintln(out, "ok")
		} else {
			fmt.Fprintf(out, "refused: %q\n", err.Error())
		}
	}
}
